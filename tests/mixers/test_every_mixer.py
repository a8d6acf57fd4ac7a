"""What holds for every mixer. Read this first: it is all that the models rely on."""

import pytest
import torch

from largest_tensor import largest_tensor_of_a_step
from shiftsort import mixers

DIM, SAMPLES, DEPTH = 16, 40, 3
LENGTHS = torch.tensor([40, 1, 23])

# So that 40 samples are many blocks.
SMALL = {
    "local": {"block": 4},
    "longformer": {"window": 6},
    "bigbird": {"block": 4},
    "sinkhorn": {"block": 4},
    "reformer": {"chunk": 4},
    "spade": {"window": 6},
}


def build(name, samples=SAMPLES, **options):
    torch.manual_seed(0)
    options = {**SMALL.get(name, {}), **options}
    return mixers.build(
        name, dim=DIM, samples=samples, layer=1, depth=DEPTH, heads=2, **options
    ).eval()


def inputs(batch=3, samples=SAMPLES, **options):
    generator = torch.Generator().manual_seed(1)
    return torch.randn(batch, samples, DIM, generator=generator, **options)


def run(mixer, *arguments):
    """The same random choices in each call, for the methods that make some."""
    torch.manual_seed(2)
    return mixer(*arguments)


every_mixer = pytest.mark.parametrize("name", mixers.names())


@every_mixer
def test_maps_samples_to_samples_of_the_same_width(name):
    y_bnc = run(build(name), inputs())
    assert y_bnc.shape == (3, SAMPLES, DIM)
    assert torch.isfinite(y_bnc).all()


@every_mixer
@pytest.mark.parametrize("samples", [1, 2, 7, 1000])
def test_gradients_are_finite_at_any_length(name, samples):
    torch.manual_seed(0)
    mixer = mixers.build(name, dim=DIM, samples=1000, heads=2)
    x_bnc = inputs(batch=2, samples=samples).requires_grad_()
    run(mixer, x_bnc).square().sum().backward()
    assert torch.isfinite(x_bnc.grad).all()
    assert x_bnc.grad.abs().sum() > 0
    for parameter in mixer.parameters():
        assert parameter.grad is None or torch.isfinite(parameter.grad).all()


@every_mixer
def test_what_is_in_the_padding_changes_no_valid_output_and_no_gradient(name):
    mixer = build(name)
    valid_bn = mixers.valid_samples(SAMPLES, LENGTHS)
    answers = []
    for garbage in (0.0, 1e4, float("nan")):
        mixer.zero_grad()
        x_bnc = inputs().masked_fill(~valid_bn[..., None], garbage).requires_grad_()
        y_bnc = run(mixer, x_bnc, LENGTHS)
        y_bnc[valid_bn].square().sum().backward()
        assert torch.equal(x_bnc.grad[~valid_bn], torch.zeros_like(x_bnc.grad[~valid_bn]))
        weights = [p.grad for p in mixer.parameters() if p.grad is not None]
        answers.append([y_bnc[valid_bn], x_bnc.grad[valid_bn], *weights])
    for other in answers[1:]:
        torch.testing.assert_close(other, answers[0])


@every_mixer
def test_a_padded_sequence_is_mixed_as_if_it_stood_alone(name):
    if name == "bigbird":
        pytest.skip("which block is the last, and so global, is a matter of the padded length")
    mixer = build(name)
    x_bnc = inputs()
    together = run(mixer, x_bnc, LENGTHS)
    for b, length in enumerate(LENGTHS.tolist()):
        alone = run(mixer, x_bnc[b : b + 1, :length])
        torch.testing.assert_close(together[b : b + 1, :length], alone, rtol=1e-4, atol=1e-5)


@every_mixer
def test_lengths_that_say_nothing_is_padded_change_nothing(name):
    mixer = build(name)
    full = torch.full((3,), SAMPLES)
    torch.testing.assert_close(run(mixer, inputs(), full), run(mixer, inputs()))


@every_mixer
def test_an_empty_sequence_poisons_nobody(name):
    mixer = build(name)
    lengths = torch.tensor([SAMPLES, 0, 5])
    y_bnc = run(mixer, inputs(), lengths)
    y_bnc[0].sum().backward()
    assert torch.isfinite(y_bnc[0]).all()
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in mixer.parameters())


@every_mixer
@pytest.mark.parametrize("how", ["weights", "autocast"])
def test_runs_in_bfloat16(name, how):
    mixer, x_bnc = build(name), inputs()
    if how == "weights":
        mixer, x_bnc = mixer.bfloat16(), x_bnc.bfloat16()
    x_bnc.requires_grad_()
    with torch.autocast("cpu", torch.bfloat16, enabled=how == "autocast"):
        y_bnc = run(mixer, x_bnc, LENGTHS)
    y_bnc.float().sum().backward()
    assert y_bnc.dtype == torch.bfloat16
    assert torch.isfinite(y_bnc[0]).all()
    assert torch.isfinite(x_bnc.grad).all()


@every_mixer
def test_compiles_as_one_graph(name):
    torch.compiler.reset()  # graphs of other tests count against the limit of this one's
    mixer, x_bnc = build(name), inputs()
    compiled = torch.compile(mixer, fullgraph=True, backend="aot_eager")
    for training, lengths in ((False, None), (True, LENGTHS)):
        mixer.train(training)
        expected = run(mixer, x_bnc, lengths)
        got = run(compiled, x_bnc, lengths)
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)
        got.sum().backward()


@every_mixer
def test_the_state_dict_holds_all_that_matters(name):
    mixer, other = build(name), build(name)
    with torch.no_grad():
        for tensor in mixer.state_dict().values():
            if tensor.is_floating_point():
                tensor.add_(0.1 * torch.randn_like(tensor))
    other.load_state_dict(mixer.state_dict())
    assert torch.equal(run(other, inputs()), run(mixer, inputs()))


@pytest.mark.parametrize(
    "name", [name for name in mixers.names() if "N^2" not in mixers.about(name).complexity]
)
def test_what_is_not_quadratic_builds_no_square_map(name):
    """The largest tensor of a training step at N = 16,384, padded batch, is below N x N / 8."""
    samples = 16_384

    def step():
        mixer = mixers.build(name, dim=DIM, samples=samples, heads=1)
        x_bnc = torch.randn(1, samples, DIM, requires_grad=True)
        return mixer, x_bnc, torch.tensor([samples])

    largest = largest_tensor_of_a_step(step)
    assert samples * DIM <= largest.numel <= samples**2 // 8, largest


@every_mixer
def test_says_where_it_comes_from_and_what_it_costs(name):
    about = mixers.about(name)
    assert all((about.complexity, about.source, about.row, about.left_out))


@every_mixer
def test_takes_the_common_options_and_names_its_own_when_one_is_unknown(name):
    common = {"heads", "channels", "dropout", "bias", "out_bias"}
    assert common <= set(mixers.options_of(name))
    wide = build(name, channels=2 * DIM, dropout=0.5, bias=True, out_bias=False).train()
    assert run(wide, inputs(), LENGTHS).shape == (3, SAMPLES, DIM)
    with pytest.raises(TypeError, match=r"takes no option 'hedas'; it takes: heads"):
        build(name, hedas=2)


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(ValueError, match=r"no mixer is called 'mah'; did you mean 'mha'\?"):
        build("mah")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"dim": 0}, "dim must be an integer of at least 1, got 0"),
        ({"samples": 2.5}, "samples must be an integer of at least 1, got 2.5"),
        ({"layer": 3, "depth": 3}, "layer must be below depth, got layer=3 with depth=3"),
    ],
)
def test_wrong_sizes_are_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        mixers.build("mha", **{"dim": DIM, "samples": SAMPLES, **wrong})
