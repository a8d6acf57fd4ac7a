"""LRA's encoder: the published parameters, padding, towers, pooling."""

import pytest
import torch

from shiftsort import mixers
from shiftsort.models import Encoder, count_parameters
from shiftsort.models.encoder import sinusoids

SMALL = {
    "vocabulary": 9,
    "classes": 4,
    "samples": 20,
    "dim": 16,
    "depth": 2,
    "heads": 2,
    "mlp_dim": 32,
}


def build(**options):
    torch.manual_seed(0)
    return Encoder(**{**SMALL, **options}).eval()


def test_parameters_of_the_published_listops_transformer():
    """Embedding, class token; per layer 4 projections without bias, an MLP, two norms; the head."""
    with torch.device("meta"):
        encoder = Encoder(
            vocabulary=16, classes=10, samples=2000, dim=512, depth=4, heads=8, mlp_dim=1024
        )
    layer = 4 * 512 * 512 + (512 * 1024 + 1024) + (1024 * 512 + 512) + 4 * 512
    head = 512 * 1024 + 1024 + 1024 * 10 + 10
    assert count_parameters(encoder) == 16 * 512 + 512 + 4 * layer + 2 * 512 + head


def test_a_layer_normalises_before_each_part():
    encoder = build(pool="none", depth=1)
    (layer,) = encoder.layers
    tokens = torch.randint(0, 9, (3, 20))
    for norm in (layer.mixer_norm, layer.mlp[0], encoder.norm):
        torch.nn.init.normal_(norm.weight)
    x = encoder.tokens(tokens) + encoder.positions
    x = x + layer.mixer(layer.mixer_norm(x))
    _, up, _, _, down, _ = layer.mlp
    hidden = torch.nn.functional.gelu(up(layer.mlp[0](x)), approximate="tanh")
    torch.testing.assert_close(encoder(tokens), encoder.head(encoder.norm(x + down(hidden))))


def test_queries_may_be_wider_or_narrower_than_the_stream():
    narrow, wide = build(channels=8), build(channels=16)
    assert count_parameters(wide) - count_parameters(narrow) == 2 * 4 * 16 * 8


@pytest.mark.parametrize("pool", ["cls", "mean", "max"])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_padding_changes_no_logit(pool, positions):
    encoder = build(pool=pool, positions=positions)
    tokens = torch.randint(1, 9, (3, 20))
    lengths = torch.tensor([20, 7, 1])
    logits = encoder(tokens, lengths)
    other = tokens.clone()
    other[1, 7:] = 3
    other[2, 1:] = 5
    torch.testing.assert_close(encoder(other, lengths), logits)
    torch.testing.assert_close(encoder(tokens[1:2, :7]), logits[1:2])


def test_without_a_pool_every_sample_has_logits():
    encoder = build(pool="none")
    tokens, lengths = torch.randint(0, 9, (3, 20)), torch.tensor([20, 7, 1])
    logits = encoder(tokens, lengths)
    assert logits.shape == (3, 20, 4)
    torch.testing.assert_close(encoder(tokens[1:2, :7]), logits[1:2, :7])


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32])
def test_tokens_and_lengths_may_be_any_integers(dtype):
    encoder, tokens, lengths = build(), torch.randint(0, 9, (3, 20)), torch.tensor([20, 7, 1])
    assert torch.equal(encoder(tokens.to(dtype), lengths.int()), encoder(tokens, lengths))


def test_two_towers_share_their_weights_and_meet_in_the_head():
    encoder = build(towers=2)
    tokens, lengths = torch.randint(0, 9, (3, 2, 20)), torch.tensor([[20, 4], [9, 9], [1, 20]])
    left = encoder.encode(tokens[:, 0], lengths[:, 0])
    right = encoder.encode(tokens[:, 1], lengths[:, 1])
    expected = encoder.head(torch.cat((left, right), dim=1))
    torch.testing.assert_close(encoder(tokens, lengths), expected)
    assert [m.out_features for m in encoder.head if isinstance(m, torch.nn.Linear)] == [32, 16, 4]


def test_fused_projections_start_as_three_glorot_matrices():
    encoder = build(dim=64)
    weight = encoder.layers[0].mixer.inner.weight
    bound = (6 / (64 + 64)) ** 0.5
    assert 0.97 * bound < weight.abs().max() <= bound


def test_sinusoids_are_the_published_ones():
    table = sinusoids(50, 6).double()
    for n, c in ((0, 0), (7, 2), (49, 4)):
        angle = torch.tensor(n / 10_000 ** (c / 6), dtype=torch.float64)
        torch.testing.assert_close(table[n, c], angle.sin(), rtol=0, atol=1e-5)
        torch.testing.assert_close(table[n, c + 1], angle.cos(), rtol=0, atol=1e-5)


@pytest.mark.parametrize("mixer", mixers.names())
def test_runs_and_learns_with_every_mixer(mixer):
    encoder = build(mixer=mixer).train()
    lengths = torch.tensor([20, 7, 1])
    logits = encoder(torch.randint(0, 9, (3, 20)), lengths)
    assert logits.shape == (3, 4)
    logits.logsumexp(-1).sum().backward()
    for name, parameter in encoder.named_parameters():
        if parameter.grad is not None:
            assert torch.isfinite(parameter.grad).all(), name


def test_saves_loads_and_compiles(tmp_path):
    encoder, other = build(mixer="csp"), build(mixer="csp")
    torch.nn.init.normal_(encoder.cls)
    torch.save(encoder.state_dict(), tmp_path / "encoder.pt")
    other.load_state_dict(torch.load(tmp_path / "encoder.pt", weights_only=True))
    tokens, lengths = torch.randint(0, 9, (3, 20)), torch.tensor([20, 7, 1])
    assert torch.equal(other(tokens, lengths), encoder(tokens, lengths))
    compiled = torch.compile(encoder, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(tokens, lengths), encoder(tokens, lengths))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"pool": "sum"}, "pool must be one of cls, mean, max, none, got 'sum'"),
        ({"positions": "rotary"}, "positions must be one of sinusoidal, learned, got 'rotary'"),
        ({"towers": 3}, "towers must be 1 or 2, got 3"),
        ({"towers": 2, "pool": "none"}, "two towers meet as one vector each"),
    ],
)
def test_wrong_options_are_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        build(**wrong)


def test_wrong_tokens_are_named():
    with pytest.raises(ValueError, match="up to 20 samples, got 21; build the model with a larger"):
        build()(torch.zeros(1, 21, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"tokens must be \(batch, 2, samples\), got shape"):
        build(towers=2)(torch.zeros(1, 20, dtype=torch.int64))
