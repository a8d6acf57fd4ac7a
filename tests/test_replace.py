"""CSP into models that know nothing of it."""

import copy
import subprocess
import sys

import pytest
import torch
from torch import nn

import shiftsort
from shiftsort import mixers

DIM, HEADS, N = 12, 2, 10


def encoder(layers=3, **options):
    torch.manual_seed(0)
    options = {"batch_first": True, "dropout": 0.0, **options}
    layer = nn.TransformerEncoderLayer(DIM, HEADS, 16, **options)
    # An even number of heads and nested tensors: where torch would go around a replaced attention.
    plain = options["batch_first"] and options.keys() == {"batch_first", "dropout"}
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=plain)


def test_every_layer_of_an_encoder_is_replaced_and_reported():
    model = encoder()
    before = sum(p.numel() for p in model.parameters())
    report = shiftsort.replace_attention(model, shift="exponential", group_size=1)
    assert not [m for m in model.modules() if isinstance(m, nn.MultiheadAttention)]
    csps = [m for m in model.modules() if isinstance(m, shiftsort.CSP)]
    assert [(m.layer, m.depth, m.shift, m.group_size) for m in csps] == [
        (layer, 3, "exponential", 1) for layer in range(3)
    ]
    assert [one.name for one in report.replaced] == [f"layers.{i}.self_attn" for i in range(3)]
    assert report.parameters_before == before
    assert report.parameters_after == before - 3 * 2 * (DIM * DIM + DIM)
    assert "layers.1.self_attn: 2 heads, 624 parameters -> csp, layer 1 of 3" in str(report)
    assert f"model: {before:,} -> {report.parameters_after:,} parameters" in str(report)


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("norm_first", [True, False])
def test_the_model_computes_what_its_layers_say(batch_first, training, norm_first):
    model = encoder(1, batch_first=batch_first, **({"norm_first": True} if norm_first else {}))
    shiftsort.replace_attention(model)
    model.train(training)
    layer = model.layers[0]
    x = torch.randn(2, N, DIM)
    with torch.no_grad():  # where torch would take its fast path
        got = model(x if batch_first else x.transpose(0, 1))
    mixer = layer.self_attn.mixer
    if norm_first:
        y = x + mixer(layer.norm1(x))
        y = y + layer.linear2(layer.linear1(layer.norm2(y)).relu())
    else:
        y = layer.norm1(x + mixer(x))
        y = layer.norm2(y + layer.linear2(layer.linear1(y).relu()))
    torch.testing.assert_close(got if batch_first else got.transpose(0, 1), y)


@pytest.mark.parametrize("training", [True, False])
def test_padding_anywhere_changes_no_valid_output(training):
    model = encoder()
    shiftsort.replace_attention(model)
    model.train(training)
    padding = torch.zeros(3, N, dtype=torch.bool)
    padding[0, 7:] = True
    padding[1, :4] = True
    padding[2, ::2] = True
    x = torch.randn(3, N, DIM)
    with torch.no_grad():
        y = model(x, src_key_padding_mask=padding)
        other = model(
            x.masked_fill(padding[..., None], 5.0),
            src_key_padding_mask=torch.zeros(3, N).masked_fill(padding, -torch.inf),
        )
    torch.testing.assert_close(y[~padding], other[~padding])
    # Padding on the left and padding on the right are the same sequence.
    turned = torch.cat((x[1:2, 4:], x[1:2, :4]), dim=1)
    right = model(turned, src_key_padding_mask=padding[1:2].roll(-4, dims=1))
    torch.testing.assert_close(y[1, 4:], right[0, :6].detach())


def test_values_and_output_are_kept_when_asked():
    model = encoder(1)
    old = copy.deepcopy(model.layers[0].self_attn)
    shiftsort.replace_attention(model, keep_weights=True)
    mixer = model.layers[0].self_attn.mixer
    assert torch.equal(mixer.csp.weight, old.in_proj_weight[2 * DIM :])
    assert torch.equal(mixer.csp.bias, old.in_proj_bias[2 * DIM :])
    assert torch.equal(mixer.out.weight, old.out_proj.weight)
    assert torch.equal(mixer.out.bias, old.out_proj.bias)


def test_replaced_by_mha_with_its_weights_a_model_stays_what_it_was():
    model = encoder().eval()
    same = copy.deepcopy(model)
    shiftsort.replace_attention(same, "mha", keep_weights=True)
    x, padding = torch.randn(2, N, DIM), torch.arange(N) >= torch.tensor([[N], [6]])
    y, z = model(x, src_key_padding_mask=padding), same(x, src_key_padding_mask=padding)
    torch.testing.assert_close(z[~padding], y[~padding])


@pytest.mark.parametrize("mixer", mixers.names())
def test_any_mixer_fits(mixer):
    model = encoder(2)
    report = shiftsort.replace_attention(model, mixer, samples=N)
    model(torch.randn(2, N, DIM)).sum().backward()
    assert report.mixer == mixer


def test_dtype_device_mode_and_biases_are_those_of_the_old():
    model = encoder(1, bias=False).double().eval()
    shiftsort.replace_attention(model)
    new = model.layers[0].self_attn
    assert {p.dtype for p in new.parameters()} == {torch.float64}
    assert sorted(dict(new.named_parameters())) == ["mixer.csp.weight", "mixer.out.weight"]
    assert not new.mixer.training


class Block(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.attention = nn.MultiheadAttention(DIM, HEADS, batch_first=True, **options)

    def forward(self, x, context=None, **options):
        context = x if context is None else context
        return self.attention(x, context, context, **options)[0]


def test_any_module_tree_and_a_sequence_without_batch():
    model = nn.Sequential(Block(), Block())
    report = shiftsort.replace_attention(model)
    assert [one.name for one in report.replaced] == ["0.attention", "1.attention"]
    x = torch.randn(N, DIM)
    torch.testing.assert_close(model(x), model(x[None])[0])


def test_an_attention_used_twice_stays_one():
    block = Block()
    model = nn.Sequential(block, block)
    report = shiftsort.replace_attention(model)
    assert len(report.replaced) == 1
    assert model[0].attention is model[1].attention
    assert model[0].attention.mixer.csp.depth == 1


def test_the_replaced_model_compiles():
    model = encoder(1)
    shiftsort.replace_attention(model)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    x, padding = torch.randn(2, N, DIM), torch.arange(N) >= torch.tensor([[N], [6]])
    torch.testing.assert_close(
        compiled(x, src_key_padding_mask=padding), model(x, src_key_padding_mask=padding)
    )


def test_cross_attention_is_refused():
    model = nn.Sequential(Block())
    shiftsort.replace_attention(model)
    with pytest.raises(ValueError, match="its key or value is another tensor than its query"):
        model[0](torch.randn(1, N, DIM), torch.randn(1, N, DIM))


def test_nested_tensors_are_refused():
    model = encoder(1).eval()
    shiftsort.replace_attention(model)
    sequences = [torch.randn(N, DIM), torch.randn(4, DIM)]
    nested = torch.nested.nested_tensor(sequences, layout=torch.jagged)
    with pytest.raises(ValueError, match="takes no nested tensors; pad them and give a key"):
        model(nested)


def test_made_for_a_length_a_padded_sequence_is_mixed_as_if_it_stood_alone():
    model = encoder().eval()
    shiftsort.replace_attention(model, samples=N)
    x, padding = torch.randn(1, N, DIM), torch.arange(N)[None] >= 6
    torch.testing.assert_close(model(x, src_key_padding_mask=padding)[:, :6], model(x[:, :6]))


def test_a_layer_by_itself_does_not_go_around_what_replaced_its_attention():
    layer = encoder(1).layers[0].eval()
    shiftsort.replace_attention(layer)
    called = []
    layer.self_attn.register_forward_hook(lambda *_: called.append(True))
    with torch.no_grad():
        layer(torch.randn(2, N, DIM))
    assert called


def test_masks_are_refused():
    model = encoder(1)
    shiftsort.replace_attention(model)
    causal = nn.Transformer.generate_square_subsequent_mask(N)
    with pytest.raises(ValueError, match="no attention map that a causal or other attn_mask"):
        model(torch.randn(1, N, DIM), mask=causal, is_causal=True)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            nn.Transformer(DIM, HEADS, 1, 1, 16),
            r"decoder\.layers\.0\.self_attn is part of a decoder.*give the encoder alone",
        ),
        (Block(kdim=5), "attention is cross-attention: its keys have width 5 and its values 12"),
        (Block(add_bias_kv=True), "attention adds a key of its own"),
        (nn.MultiheadAttention(DIM, HEADS), "model is itself an attention; give the module"),
        (nn.Linear(2, 2), "there is no torch.nn.MultiheadAttention in this Linear"),
    ],
)
def test_what_cannot_be_replaced_is_refused_and_left_alone(model, message):
    before = [type(module) for module in model.modules()]
    with pytest.raises(ValueError, match=message):
        shiftsort.replace_attention(model)
    assert [type(module) for module in model.modules()] == before


@pytest.mark.parametrize(
    ("mixer", "options", "message"),
    [
        ("csp", {"channels": 24, "keep_weights": True}, "keep_weights needs projections of the"),
        ("luna", {"keep_weights": True}, "keep_weights: 'luna' has no projections that match"),
        ("linformer", {}, "mixer 'linformer' is made to a length: samples must be given, got None"),
    ],
)
def test_options_that_do_not_fit_change_nothing(mixer, options, message):
    model = encoder(1)
    with pytest.raises(ValueError, match=message):
        shiftsort.replace_attention(model, mixer, **options)
    assert isinstance(model.layers[0].self_attn, nn.MultiheadAttention)


def test_importing_shiftsort_does_not_import_the_mixers():
    code = "import sys, shiftsort; sys.exit('shiftsort.mixers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
