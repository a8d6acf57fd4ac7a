"""MEGA: its average against the recurrence, its attention against the formula, and with CSP."""

import math

import pytest
import torch

from largest_tensor import largest_tensor_of_a_step
from shiftsort import shift_steps
from shiftsort.models import Mega, count_parameters
from shiftsort.models.mega import ATTENTIONS, NORMS, Attention, MovingAverage, Permutation
from shiftsort.operator.spec import csp_spec

SMALL = {
    "vocabulary": 9,
    "classes": 3,
    "samples": 20,
    "dim": 8,
    "depth": 2,
    "hidden": 12,
    "z": 4,
    "averages": 3,
}
PIXELS = {**SMALL, "vocabulary": None, "prenorm": True}
LENGTHS = torch.tensor([20, 7, 1])


def build(**options):
    torch.manual_seed(0)
    return Mega(**{**SMALL, **options}).eval()


def recurrence(move, x_bnc, direction):
    """a(n) = q a(n - 1) + p beta x(n), and gamma . a / sqrt(averages) of it, one step at a time."""
    rows = slice(0, move.dim) if direction == "forth" else slice(move.dim, None)
    delta, alpha, beta, gamma = (
        parameter[rows] for parameter in (move.delta, move.alpha, move.beta, move.gamma)
    )
    p = delta.sigmoid()
    q = 1 - p * alpha.sigmoid()
    steps = list(x_bnc.unbind(1))
    state, out = torch.zeros(len(x_bnc), *p.shape), []
    for x_bc in steps if direction == "forth" else steps[::-1]:
        state = q * state + p * beta * x_bc[..., None]
        out.append((gamma * state).sum(-1) / math.sqrt(p.shape[1]))
    return torch.stack(out if direction == "forth" else out[::-1], dim=1)


@pytest.mark.parametrize("samples", [1, 2, 7, 40])
@pytest.mark.parametrize("truncation", [None, 40])
def test_the_average_by_fft_is_the_recurrence(samples, truncation):
    torch.manual_seed(0)
    move = MovingAverage(5, 4, truncation)
    x_bnc = torch.randn(2, samples, 5, requires_grad=True)
    moved = recurrence(move, x_bnc, "forth") + recurrence(move, x_bnc, "back")
    expected = torch.nn.functional.silu(moved + x_bnc * move.omega)
    got = move(x_bnc)
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)
    direction = torch.randn_like(got)
    inputs = [x_bnc, *move.parameters()]
    torch.testing.assert_close(
        torch.autograd.grad((got * direction).sum(), inputs),
        torch.autograd.grad((expected * direction).sum(), inputs),
        rtol=1e-3,
        atol=1e-4,
    )


def test_truncation_cuts_the_average_off():
    move = MovingAverage(2, 4, 3)
    x_bnc = torch.zeros(1, 15, 2)
    x_bnc[0, 7] = 1
    touched = move(x_bnc)[0].abs().amax(dim=-1) > 1e-6
    assert touched.nonzero().flatten().tolist() == [5, 6, 7, 8, 9]


def test_the_average_keeps_float32_under_autocast():
    move, x_bnc = MovingAverage(4, 4, None), torch.randn(1, 50, 4)
    with torch.autocast("cpu", torch.bfloat16):
        inside = move(x_bnc)
    assert torch.equal(inside, move(x_bnc))


@pytest.mark.parametrize("lengths", [None, [11, 4]])
@pytest.mark.parametrize("chunk", [None, 4])
@pytest.mark.parametrize("kind", ["softmax", "laplace"])
def test_attention_is_its_formula(kind, chunk, lengths):
    torch.manual_seed(0)
    samples, z = 11, 3
    attention = Attention(20, z, kind, chunk, 0.0)
    torch.nn.init.normal_(attention.scale)
    torch.nn.init.normal_(attention.bias)
    z_bnz, value = torch.randn(2, samples, z), torch.randn(2, samples, 5)
    valid = None
    if lengths is not None:
        valid = torch.arange(samples) < torch.tensor(lengths)[:, None]
    got = attention(z_bnz, value, None, valid)

    size = chunk or samples
    for b in range(2):
        length = samples if lengths is None else lengths[b]
        for i in range(length):
            first = i // size * size
            keys = range(first, min(first + size, length))
            q = z_bnz[b, i] * attention.scale[0] + attention.shift[0]
            k = torch.stack([z_bnz[b, j] * attention.scale[1] + attention.shift[1] for j in keys])
            bias = torch.stack([attention.bias[attention.longest - 1 + j - i] for j in keys])
            if kind == "softmax":
                weights = (k @ q / math.sqrt(z) + bias).softmax(dim=0)
            else:
                normal = torch.distributions.Normal(math.sqrt(0.5), math.sqrt(1 / (4 * math.pi)))
                weights = normal.cdf(k @ q / len(keys) + bias)
            expected = sum(w * value[b, j] for w, j in zip(weights, keys, strict=True))
            torch.testing.assert_close(got[b, i], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["softmax", "laplace"])
def test_a_chunk_as_long_as_the_sequence_is_no_chunk(kind):
    whole, chunked = build(attention=kind), build(attention=kind, chunk=20)
    chunked.load_state_dict(whole.state_dict())
    tokens = torch.randint(0, 9, (3, 20))
    for lengths in (None, LENGTHS):
        torch.testing.assert_close(chunked(tokens, lengths), whole(tokens, lengths))


def test_with_csp_there_are_no_queries_and_keys():
    soft, csp = build(), build(attention="csp")
    assert not list(csp.layers[0].attention.parameters())
    missing = {name: p.numel() for name, p in soft.layers[0].attention.named_parameters()}
    assert missing == {"scale": 8, "shift": 8, "bias": 39}
    gates = 4 * (8 + 1)  # the part of the fused projection that made z
    assert count_parameters(soft) - count_parameters(csp) == 2 * (8 + 8 + 39 + gates)


@pytest.mark.parametrize("shift", ["linear", "exponential", "none"])
@pytest.mark.parametrize("group_size", [1, 2, None])
def test_csp_permutes_the_values(shift, group_size):
    mix = Permutation(20, 6, 1, 2, group_size=group_size, shift=shift)
    value = torch.randn(3, 20, 6)
    steps = shift_steps(shift, 20, 6, layer=1, depth=2)
    got = mix(value[..., :0], value, LENGTHS, None)
    assert torch.equal(got, csp_spec(value, steps, group_size, lengths=LENGTHS))


@pytest.mark.parametrize("norm", ["layer", "scale", "rms"])
@pytest.mark.parametrize("attention", ATTENTIONS)
def test_padding_changes_no_logit(attention, norm):
    mega = build(attention=attention, norm=norm)
    tokens = torch.randint(0, 9, (3, 20))
    logits = mega(tokens, LENGTHS)
    other = tokens.clone()
    other[1, 7:] = 3
    other[2, 1:] = 5
    torch.testing.assert_close(mega(other, LENGTHS), logits)
    torch.testing.assert_close(mega(tokens[1:2, :7]), logits[1:2])


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("prenorm", [True, False])
def test_runs_and_learns_with_every_norm(attention, norm, prenorm):
    mega = build(**{**PIXELS, "attention": attention, "norm": norm, "prenorm": prenorm}).train()
    mega(torch.randint(0, 256, (4, 20))).logsumexp(-1).sum().backward()
    for name, parameter in mega.named_parameters():
        assert parameter.grad is not None, f"{name} gets no gradient"
        assert torch.isfinite(parameter.grad).all(), name


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("prenorm", [True, False])
def test_a_layer_is_its_formula(prenorm, attention):
    """Names on the right are the paper's: phi, gamma and omega gate the average X'."""
    mega = build(attention=attention, prenorm=prenorm)
    gated, feed = mega.layers[:2]
    for norm in (gated.norm.norm, feed.norm.norm):
        torch.nn.init.normal_(norm.weight)
    silu = torch.nn.functional.silu
    x = torch.randn(2, 20, 8)
    inner = gated.norm(x, None) if prenorm else x
    average = gated.move(inner)
    weight, bias = gated.gates.weight.split([8, 8, 12, gated.attention.z]), gated.gates.bias
    bias = bias.split([8, 8, 12, gated.attention.z])
    phi, h, gamma, z = (average @ w.T + b for w, b in zip(weight, bias, strict=True))
    out = gated.attention(silu(z), silu(gated.value(inner)), None, None)
    h = silu(h + gated.back(silu(gamma) * out))
    y = phi.sigmoid() * h + (1 - phi.sigmoid()) * x
    y = y if prenorm else gated.norm(y, None)
    torch.testing.assert_close(gated(x, None, None), y)
    up, _, _, down, _ = feed.mlp
    z = y + down(silu(up(feed.norm(y, None) if prenorm else y)))
    torch.testing.assert_close(feed(y, None, None), z if prenorm else feed.norm(z, None))


@pytest.mark.parametrize("attention", ["softmax", "laplace"])  # CSP may choose another place
@pytest.mark.parametrize("body", [SMALL, PIXELS], ids=["tokens", "pixels"])
@pytest.mark.parametrize("how", ["weights", "autocast"])
def test_bfloat16_is_near_float32(how, body, attention):
    mega, tokens = build(**{**body, "attention": attention}), torch.randint(0, 9, (3, 20))
    exact = mega(tokens)
    mega = mega.bfloat16() if how == "weights" else mega
    with torch.autocast("cpu", torch.bfloat16, enabled=how == "autocast"):
        logits = mega(tokens)
    assert logits.dtype == torch.bfloat16
    assert (logits - exact).norm() < 0.03 * exact.norm()


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("samples", [1, 2, 7, 1000])
def test_gradients_are_finite_at_any_length(samples, attention):
    mega = build(samples=1000, attention=attention, chunk=None if attention == "csp" else 4)
    lengths = torch.tensor([samples, 1])
    mega(torch.randint(0, 9, (2, samples)), lengths).logsumexp(-1).sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in mega.parameters() if p.grad is not None)


@pytest.mark.parametrize("norm", ["scale", "rms"])
def test_scale_and_root_mean_square_norms(norm):
    x = torch.randn(2, 5, 8)
    module = build(norm=norm).layers[0].norm
    weight = next(module.parameters()).data.normal_()
    expected = x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt() * weight
    assert weight.numel() == (1 if norm == "scale" else 8)
    torch.testing.assert_close(module(x, None), expected)


def test_gray_values_are_scaled_and_lengths_of_images_are_not_looked_at():
    mega = build(**PIXELS, pixels=(0.48, 0.24))
    seen = []
    mega.embedding.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    gray = torch.randint(0, 256, (2, 20))
    logits = mega(gray)
    torch.testing.assert_close(seen[0], (gray / 255 - 0.48) / 0.24)
    assert torch.equal(mega(gray, torch.tensor([20, 3])), logits)


def test_two_towers_share_their_weights_and_meet_in_the_head():
    mega = build(towers=2)
    tokens, lengths = torch.randint(0, 9, (3, 2, 20)), torch.tensor([[20, 4], [9, 9], [1, 20]])
    left = mega.encode(tokens[:, 0], lengths[:, 0])
    right = mega.encode(tokens[:, 1], lengths[:, 1])
    torch.testing.assert_close(mega(tokens, lengths), mega.head(torch.cat((left, right), dim=1)))


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_saves_loads_and_compiles(attention, tmp_path):
    torch.compiler.reset()
    mega, other = build(attention=attention), build(attention=attention)
    with torch.no_grad():
        for parameter in mega.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    torch.save(mega.state_dict(), tmp_path / "mega.pt")
    other.load_state_dict(torch.load(tmp_path / "mega.pt", weights_only=True))
    tokens = torch.randint(0, 9, (3, 20))
    assert torch.equal(other(tokens, LENGTHS), mega(tokens, LENGTHS))
    compiled = torch.compile(mega, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(tokens, LENGTHS), mega(tokens, LENGTHS))


def test_an_empty_sequence_poisons_nobody():
    for attention in ATTENTIONS:
        mega = build(attention=attention)
        logits = mega(torch.randint(0, 9, (2, 20)), torch.tensor([20, 0]))
        logits[0].sum().backward()
        assert all(p.grad is None or torch.isfinite(p.grad).all() for p in mega.parameters())


@pytest.mark.parametrize("how", [{"attention": "csp"}, {"attention": "laplace", "chunk": 1024}])
def test_csp_and_chunks_build_no_square_map(how):
    samples = 16_384

    def step():
        mega = Mega(**{**PIXELS, **how, "samples": samples, "truncation": 4096})
        return mega, torch.zeros(2, samples)

    largest = largest_tensor_of_a_step(step)
    assert samples * 8 <= largest.numel <= samples**2 // 4, largest


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"attention": "relu"}, "attention must be one of softmax, laplace, csp, got 'relu'"),
        ({"norm": "group"}, "norm must be one of layer, scale, rms, batch, syncbatch, got 'group'"),
        ({"attention": "csp", "chunk": 4}, "chunk is for softmax and laplace, got chunk=4"),
        ({"csp": {"shift": "none"}}, "csp= is for attention='csp', got it with 'softmax'"),
    ],
)
def test_wrong_options_are_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        build(**wrong)


def test_wrong_tokens_and_sync_batch_norm_of_padded_text_are_named():
    tokens = torch.zeros(1, 20, dtype=torch.int64)
    with pytest.raises(ValueError, match="up to 20 samples, got 21; build the model with a larger"):
        build()(torch.zeros(1, 21, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"tokens must be \(batch, 2, samples\), got shape"):
        build(towers=2)(tokens)
    with pytest.raises(ValueError, match="norm='syncbatch' takes no lengths, as padding"):
        build(norm="syncbatch")(tokens, torch.tensor([3]))
