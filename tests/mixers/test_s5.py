"""S5 against the recurrence it stands for, and its published beginning."""

import pytest
import torch

from shiftsort import mixers
from shiftsort.mixers.s5 import hippo_blocks

DIM, STATES, BLOCKS = 6, 8, 2


def build(**options):
    torch.manual_seed(0)
    options = {"states": STATES, "blocks": BLOCKS, **options}
    return mixers.build("s5", dim=DIM, samples=64, **options).double()


def inputs(samples=64):
    torch.manual_seed(1)
    return torch.randn(2, samples, DIM, dtype=torch.float64, requires_grad=True)


def matrices(mixer):
    """A of all states, conjugates included, B and C of each direction; all continuous."""
    a_p, b_pc, c_dcp = (torch.view_as_complex(p) for p in (mixer.eigenvalues, mixer.b, mixer.c))
    return torch.cat((a_p, a_p.conj())), torch.cat((b_pc, b_pc.conj())), c_dcp


def recurrence(mixer, x_bnc, a_bar_p, b_bar_pc):
    *_, c_dcp = matrices(mixer)
    y_bnc = x_bnc * mixer.d
    steps = range(x_bnc.shape[1])
    for c_cp, order in zip(c_dcp, (steps, reversed(steps)), strict=False):
        state_bp, found = torch.zeros(len(x_bnc), len(a_bar_p), dtype=a_bar_p.dtype), {}
        for n in order:
            state_bp = a_bar_p * state_bp + x_bnc[:, n].to(a_bar_p.dtype) @ b_bar_pc.mT
            found[n] = state_bp @ torch.cat((c_cp, c_cp.conj()), dim=-1).mT
        y_bnc = y_bnc + torch.stack([found[n] for n in steps], dim=1).real
    return y_bnc


@pytest.mark.parametrize("discretisation", ["zoh", "bilinear"])
@pytest.mark.parametrize("bidirectional", [True, False])
def test_its_scan_is_the_unrolled_recurrence(discretisation, bidirectional):
    mixer = build(discretisation=discretisation, bidirectional=bidirectional)
    x_bnc = inputs()
    a_p, b_pc, _ = matrices(mixer)
    step_p = mixer.log_step.exp().repeat(2)
    if discretisation == "zoh":
        # The exponential of the matrix [[A, B], [0, 0]] has both in its upper rows.
        both = torch.zeros(STATES + DIM, STATES + DIM, dtype=a_p.dtype)
        both[:STATES] = torch.cat((a_p.diag(), b_pc), dim=1) * step_p[:, None]
        a_bar_p, b_bar_pc = both.matrix_exp()[:STATES].split((STATES, DIM), dim=1)
        a_bar_p = a_bar_p.diagonal()
    else:
        implicit_p = 1 / (1 - step_p / 2 * a_p)
        a_bar_p = implicit_p * (1 + step_p / 2 * a_p)
        b_bar_pc = (implicit_p * step_p)[:, None] * b_pc
    weights = [x_bnc, mixer.eigenvalues, mixer.log_step, mixer.b, mixer.c, mixer.d]
    direction = torch.randn_like(x_bnc)
    got, want = (
        (y_bnc, torch.autograd.grad((y_bnc * direction).sum(), weights))
        for y_bnc in (mixer.system(x_bnc), recurrence(mixer, x_bnc, a_bar_p, b_bar_pc))
    )
    torch.testing.assert_close(got, want)


def test_the_reversed_sequence_is_mixed_in_reverse_by_the_other_output():
    mixer, x_bnc = build(), inputs(33)
    forth = mixer.system(x_bnc)
    mixer.c.data = mixer.c.data.flip(0)
    torch.testing.assert_close(mixer.system(x_bnc.flip(1)).flip(1), forth)


def test_in_one_direction_nothing_looks_ahead():
    mixer, x_bnc = build(bidirectional=False).eval(), inputs(9)
    changed = x_bnc.detach().clone()
    changed[:, 5:] += 1
    assert torch.equal(mixer(changed)[:, :5], mixer(x_bnc)[:, :5])


def test_it_begins_with_hippo_in_blocks():
    eigenvalues, basis = hippo_blocks(24, 3)
    half = (basis * eigenvalues) @ basis.mH
    whole = (half + half.conj()).real
    n = torch.arange(8, dtype=torch.float64)
    root = torch.sqrt(2 * n + 1)
    # HiPPO-LegS, A[n, k] = -sqrt(2n + 1) sqrt(2k + 1) below the diagonal, -(n + 1) on it; and its
    # low rank term is added.
    normal = torch.where(n[:, None] > n, -root[:, None] * root, 0.0) - torch.diag(n + 1)
    low_rank = torch.sqrt(n + 0.5)
    normal = normal + low_rank[:, None] * low_rank
    torch.testing.assert_close(whole, torch.block_diag(normal, normal, normal))


def test_outputs_begin_as_large_as_published():
    for output, variance in (
        ("truncated_normal", 1),
        ("lecun_normal", 1 / 64),
        ("complex_normal", 1),
    ):
        mixer = mixers.build("s5", dim=64, samples=8, states=64, blocks=4, output=output)
        size = torch.view_as_complex(mixer.c.data).abs().square().mean().item()
        expected = variance if output == "complex_normal" else 2 * variance / 64
        assert size == pytest.approx(expected, rel=0.1), output
        assert torch.view_as_complex(mixer.b.data).abs().square().mean().item() == pytest.approx(
            1 / 64, rel=0.1
        )


@pytest.mark.parametrize("activation", ["half_glu1", "half_glu2", "full_glu", "gelu"])
def test_every_gate(activation):
    mixer, x_bnc = build(activation=activation).eval(), inputs(5)
    y = mixer.system(x_bnc)
    g = torch.nn.functional.gelu(y, approximate="tanh")
    left, right = mixer.gate(g).tensor_split((DIM,), dim=-1) if mixer.gate else (None, None)
    expected = {
        "half_glu1": lambda: g * left.sigmoid(),
        "half_glu2": lambda: y * left.sigmoid(),
        "full_glu": lambda: left * right.sigmoid(),
        "gelu": lambda: g,
    }[activation]()
    torch.testing.assert_close(mixer(x_bnc), expected)


def test_small_steps_keep_their_digits():
    mixer = build()
    mixer.eigenvalues.data[:] = torch.tensor([-0.5, 0.1])
    mixer.log_step.data.fill_(-9.0)
    single, double = (mixer.discrete(dtype)[1] for dtype in (torch.float32, torch.float64))
    torch.testing.assert_close(single.to(double.dtype), double, rtol=1e-5, atol=0)


def test_a_clipped_system_does_not_grow():
    mixer = build(clip=True)
    mixer.eigenvalues.data[:, 0] = 3.0
    a_p, _ = mixer.discrete(torch.float64)
    assert (a_p.abs() < 1).all()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"states": 12}, r"states must be a multiple of 2 \* blocks, got states=12 with blocks=4"),
        ({"output": "normal"}, "output must be one of truncated_normal, lecun_normal"),
        ({"discretisation": "euler"}, "discretisation must be one of zoh, bilinear, got 'euler'"),
    ],
)
def test_wrong_options_are_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        build(**{"blocks": 4, **wrong})
