"""S4 and S4D against their recurrences, and SPADE against its parts."""

import copy
import math

import pytest
import torch
from torch.nn.functional import gelu, glu

from largest_tensor import largest_tensor_of_a_step
from shiftsort import mixers
from shiftsort.mixers import state_space
from shiftsort.mixers.s4 import S4
from shiftsort.mixers.s4d import DISCRETISATIONS, STARTS

DIM, STATES = 3, 8


def build(name, samples=64, dim=DIM, **options):
    torch.manual_seed(0)
    return mixers.build(name, dim=dim, samples=samples, states=STATES, **options).double()


def matrices(mixer):
    """dt, and A, B and what is learned as C of each channel, all states written out."""
    dt, a, b, c = mixer.parts()
    a, b, c = (torch.cat((x, x.conj()), dim=-1) for x in (a, b, c))
    a = torch.diag_embed(a)
    if hasattr(mixer, "p"):
        p = mixer.of_channels(torch.view_as_complex(mixer.p))
        p = torch.cat((p, p.conj()), dim=-1)
        a = a - p[..., :, None] * p.conj()[..., None, :]
    return dt[..., None], a, b[..., None], c


def discrete(mixer, how):
    """x(n) = A x(n - 1) + B u(n)."""
    dt, a, b, _ = matrices(mixer)
    one = torch.eye(a.shape[-1], dtype=a.dtype)
    if how == "bilinear":
        left = one - dt / 2 * a
        return torch.linalg.solve(left, one + dt / 2 * a), torch.linalg.solve(left, dt * b)
    power = torch.linalg.matrix_exp(dt * a)
    return power, torch.linalg.solve(a, (power - one) @ b)


def reader(mixer, power):
    """C, where C (1 - A^N) is learned in its place."""
    c = matrices(mixer)[-1]
    if not hasattr(mixer, "p"):
        return c
    one = torch.eye(power.shape[-1], dtype=power.dtype)
    lost = one - torch.linalg.matrix_power(power, mixer.samples)
    return torch.linalg.solve(lost.mT, c[..., None])[..., 0]


def unrolled(mixer, samples, how):
    """The kernels, one lag after the other."""
    power, state = discrete(mixer, how)
    c = reader(mixer, power)
    lags = []
    for _ in range(samples):
        lags.append((c * state[..., 0]).sum(-1).real)
        state = power @ state
    return torch.stack(lags, dim=-1)


@pytest.mark.parametrize("copies", [1, DIM, None])
@pytest.mark.parametrize("samples", [64, 63, 2, 1])
def test_the_kernel_of_s4_is_its_recurrence(samples, copies):
    mixer = build("s4", samples, copies=copies)
    expected = unrolled(mixer, samples, "bilinear")
    torch.testing.assert_close(mixer.kernels(samples), expected, rtol=1e-9, atol=1e-9)
    shorter = mixer.kernels(samples // 2 + 1)
    torch.testing.assert_close(shorter, expected[..., : samples // 2 + 1], rtol=1e-9, atol=1e-9)
    parameters = [p for name, p in mixer.named_parameters() if name in {*mixer.kinds, "c"}]
    direction = torch.randn_like(expected)
    torch.testing.assert_close(
        torch.autograd.grad((mixer.kernels(samples) * direction).sum(), parameters),
        torch.autograd.grad((expected * direction).sum(), parameters),
        rtol=1e-7,
        atol=1e-7,
    )


def test_the_kernel_that_s4_starts_from_is_that_of_the_c_that_was_drawn(monkeypatch):
    mixer = build("s4", 30)
    monkeypatch.setattr(S4, "_of_first_lags", lambda self: self.c)
    drawn = torch.view_as_complex(build("s4", 30).c)
    power, _ = discrete(mixer, "bilinear")
    got = reader(mixer, power)[..., : STATES // 2]
    torch.testing.assert_close(got, drawn, rtol=1e-3, atol=1e-4)


def test_chunks_of_channels_change_nothing(monkeypatch):
    mixer = build("s4")
    whole = mixer.kernels(64)
    monkeypatch.setattr("shiftsort.mixers.s4._AT_A_TIME", 1)
    assert torch.equal(mixer.kernels(64), whole)


def test_path_x_is_computed_in_parts():
    """With every channel at once, one tensor of the step would have 2 x 256 x 32 x 8193 values."""

    def step():
        mixer = mixers.build("s4", dim=256, samples=16_384)
        return mixer, torch.randn(1, 16_384, 256, requires_grad=True)

    assert largest_tensor_of_a_step(step).numel <= 1 << 25


@pytest.mark.parametrize("how", DISCRETISATIONS)
@pytest.mark.parametrize("start", STARTS)
def test_the_kernel_of_s4d_is_its_recurrence(start, how):
    mixer = build("s4d", start=start, discretisation=how)
    torch.testing.assert_close(mixer.kernels(50), unrolled(mixer, 50, how), rtol=1e-8, atol=1e-8)


def test_s4_without_its_part_of_rank_one_is_s4d():
    mixer, diagonal = build("s4"), build("s4d", discretisation="bilinear")
    with torch.no_grad():
        mixer.p.zero_()
        for name, parameter in diagonal.named_parameters():
            parameter.copy_(mixer.get_parameter(name))
        # What S4 learns is C (1 - A^N), and A is diagonal now.
        dt, a, _, c = mixer.parts()
        power = ((1 + dt * a / 2) / (1 - dt * a / 2)) ** 64
        diagonal.c.copy_(torch.view_as_real(c / (1 - power)))
    torch.testing.assert_close(mixer.kernels(64), diagonal.kernels(64), rtol=1e-9, atol=1e-9)


def test_hippo_is_diagonal_but_for_a_part_of_rank_one():
    n = torch.arange(STATES, dtype=torch.float64)
    root = torch.sqrt(2 * n + 1)
    legs = -(root[:, None] * root).tril(-1) - torch.diag(n + 1)
    a, p, _ = state_space.hippo(STATES)
    a, p = (torch.cat((x, x.conj())) for x in (a, p))
    ours = torch.diag(a) - p[:, None] * p.conj()
    for power in (1, 2, 3):  # the same spectrum
        torch.testing.assert_close(
            torch.linalg.matrix_power(ours, power).trace().real.double(),
            torch.linalg.matrix_power(legs, power).trace(),
            rtol=1e-4,
            atol=1e-4,
        )


@pytest.mark.parametrize(
    ("start", "second"), [("lin", math.pi), ("inv", 8 / math.pi * (8 / 3 - 1))]
)
def test_the_diagonal_starts_are_the_published_ones(start, second):
    mixer = build("s4d", start=start)
    torch.testing.assert_close(mixer.frequency[0, 1].item(), second, rtol=1e-6, atol=0)
    torch.testing.assert_close(mixer.decay.exp(), torch.full_like(mixer.decay, 0.5))


@pytest.mark.parametrize("name", ["s4", "s4d"])
def test_the_layer_is_its_formula(name):
    mixer, x = build(name, 20), torch.randn(2, 20, DIM, dtype=torch.float64)
    forth, back = mixer.kernels(20)
    y = torch.zeros_like(x)
    for n in range(20):
        for m in range(20):
            kernel = forth[:, n - m] * (m <= n) + back[:, m - n] * (m >= n)
            y[:, n] += kernel * x[:, m]
    y = glu(mixer.out(gelu(y + mixer.d * x)))
    torch.testing.assert_close(mixer(x), y)


@pytest.mark.parametrize("name", ["s4", "s4d"])
def test_a_reversed_sequence_is_reversed_by_swapped_kernels(name):
    mixer, x = build(name, 20), torch.randn(2, 20, DIM, dtype=torch.float64)
    swapped = copy.deepcopy(mixer)
    with torch.no_grad():
        swapped.c.copy_(mixer.c.flip(0))
    torch.testing.assert_close(swapped(x.flip(1)).flip(1), mixer(x))
    assert not torch.allclose(mixer(x.flip(1)).flip(1), mixer(x))


@pytest.mark.parametrize("name", ["s4", "s4d"])
def test_one_direction_does_not_see_what_comes_later(name):
    mixer = build(name, 20, bidirectional=False)
    x = torch.randn(1, 20, DIM, dtype=torch.float64)
    later = x.clone()
    later[:, 10:] += 1
    torch.testing.assert_close(mixer(later)[:, :10], mixer(x)[:, :10])


def test_the_steps_are_drawn_between_their_bounds():
    mixer = build("s4d", dim=500, dt_min=0.01, dt_max=0.02)
    dt = mixer.parts()[0]
    assert 0.0099 < dt.min() < 0.0105
    assert 0.0195 < dt.max() < 0.0201


def test_spade_joins_states_and_window_in_the_bottom_layer_alone():
    x, lengths = torch.randn(2, 30, DIM, dtype=torch.float64), torch.tensor([30, 11])
    mixer = build("spade", 30, heads=1, window=4, depth=2)
    window = mixers.build("longformer", dim=DIM, samples=30, heads=1, window=4, global_samples=0)
    window = window.double()
    window.load_state_dict({key: mixer.state_dict()[key] for key in window.state_dict()})
    for given in (None, lengths):
        far = mixer.everything_norm(mixer.everything(x, given))
        near = mixer.window_norm(window(x, given))
        joined = mixer.join(torch.cat((far, near), dim=-1))
        torch.testing.assert_close(mixer(x, given), joined)
    upper = build("spade", 30, heads=1, window=4, layer=1, depth=2)
    assert upper.everything is None
    upper.load_state_dict(window.state_dict())
    torch.testing.assert_close(upper(x), window(x))


def test_the_bottom_layer_of_spade_is_as_safe_as_every_mixer():
    """Those are tested in the second layer."""
    mixer = build("spade", 30, heads=1, window=4).float()
    lengths = torch.tensor([30, 11])
    valid = mixers.valid_samples(30, lengths)
    x = torch.randn(2, 30, DIM)
    wrong = x.masked_fill(~valid[..., None], float("nan")).requires_grad_()
    y = mixer(wrong, lengths)
    torch.testing.assert_close(y[valid], mixer(x, lengths)[valid])
    torch.testing.assert_close(y[1:, :11], mixer(x[1:, :11]), rtol=1e-4, atol=1e-5)
    y[valid].sum().backward()
    assert torch.isfinite(wrong.grad).all()
    torch.compiler.reset()
    compiled = torch.compile(mixer, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x, lengths), mixer(x, lengths), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("s4", {"states": 7}, "states must be even, as they are pairs, got 7"),
        ("s4", {"copies": 2}, "copies must divide the 3 channels, got 2"),
        ("s4", {"dt_min": 0.2}, "dt_min must be above 0 and not above 0.1, got 0.2"),
        ("s4d", {"start": "fout"}, "start must be one of lin, inv, legs, got 'fout'"),
        ("s4d", {"discretisation": "dss"}, "must be one of zoh, bilinear, got 'dss'"),
    ],
)
def test_wrong_options_are_named(name, wrong, message):
    with pytest.raises(ValueError, match=message):
        mixers.build(name, **{"dim": DIM, "samples": 9, **wrong})


def test_a_longer_sequence_than_s4_was_made_for_is_refused():
    with pytest.raises(
        ValueError, match=r"made for up to 9 samples, got 10; build it with a larger"
    ):
        build("s4", 9)(torch.zeros(1, 10, DIM, dtype=torch.float64))
