"""What the paper proves of CSP, on random stacks. More stands in tests/studies: sorting as optimal
transport, the count of heads, the reach of shifts.
"""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from shiftsort import CSP, attention_maps, csp, shift_steps
from shiftsort.operator.spec import shift_matrix
from shiftsort.studies.collapse import norm_1
from shiftsort.studies.residual import residual, residual_1

SLACK = 1 + 1e-9


FUNCTIONS = {
    "identity": (lambda y: y, 1.0),
    "relu": (torch.relu, 1.0),
    "scaled tanh with a bias": (lambda y: 1.5 * torch.tanh(y + 0.3), 1.5),
    "leaky": (lambda y: torch.nn.functional.leaky_relu(y, -2.0), 2.0),
}


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("order", ["reference", "ascending"])
@settings(max_examples=12)
@given(
    samples=st.integers(2, 12),
    channels=st.integers(1, 4),
    depth=st.integers(1, 3),
    group_size=st.sampled_from([1, 2, 3, None]),
    shift=st.sampled_from(["linear", "exponential"]),
    seed=st.integers(0, 2**31),
)
def test_theorem_1(
    function: str,
    order: str,
    samples: int,
    channels: int,
    depth: int,
    group_size: int | None,
    shift: str,
    seed: int,
) -> None:
    torch.manual_seed(seed)
    f, lipschitz = FUNCTIONS[function]
    layers = [
        CSP(
            channels,
            group_size=group_size,
            shift=shift,
            order=order,
            layer=layer,
            depth=depth,
            dtype=torch.float64,
        )
        for layer in range(depth)
    ]
    x = torch.randn(samples, channels, dtype=torch.float64)
    y = x
    with torch.no_grad():
        for layer in layers:
            y = f(layer(y))
    beta = max(norm_1(layer.weight) for layer in layers)
    bound = channels ** (depth / 2) * (lipschitz * beta) ** depth * residual(x)
    assert residual(y) <= bound * SLACK


@given(st.integers(2, 30), st.integers(1, 6), st.sampled_from([1, 2, 5, None]), st.integers(0, 99))
def test_the_step_of_the_proof_that_is_tight(
    samples: int, channels: int, group_size: int | None, seed: int
) -> None:
    """A permutation of each channel leaves the 1-norm of the residual exactly as it is."""
    torch.manual_seed(seed)
    v = torch.randn(samples, channels, dtype=torch.float64)
    y = csp(v, torch.arange(channels), group_size)
    assert residual_1(y) == pytest.approx(residual_1(v), rel=1e-12)


def test_a_deep_stack_does_not_collapse_where_attention_does() -> None:
    """The point of the theorem: with W = I the residual never shrinks, softmax attention's does."""
    torch.manual_seed(0)
    x = torch.randn(32, 8, dtype=torch.float64)
    permuted, attended = x, x
    for _ in range(12):
        permuted = csp(permuted, torch.arange(8), 2)
        attended = torch.softmax(attended @ attended.mT / 8**0.5, -1) @ attended
    assert residual_1(permuted) == pytest.approx(residual_1(x), rel=1e-12)
    assert residual_1(attended) < 1e-3 * residual_1(x)


@given(
    st.integers(1, 12),
    st.integers(1, 5),
    st.sampled_from([1, 2, 3, 12]),
    st.sampled_from(["linear", "exponential"]),
    st.integers(0, 99),
)
def test_a_map_is_a_shift_and_then_a_permutation_within_groups(
    samples: int, channels: int, group_size: int, shift: str, seed: int
) -> None:
    """P_c = BlkDiag(T_c^(1), ..., T_c^(K)) S_{J_c}, and P_1 = I."""
    torch.manual_seed(seed)
    steps = shift_steps(shift, samples, channels)
    p = attention_maps(torch.randn(samples, channels), steps, group_size).long()
    assert torch.equal(p[0], torch.eye(samples).long())
    group = torch.arange(samples) // group_size
    for p_c, step in zip(p, steps.tolist(), strict=True):
        t = p_c @ shift_matrix(samples, step).T
        assert not t[group[:, None] != group].any()
        for sums in (t.sum(0), t.sum(1)):
            assert sums.tolist() == [1] * samples


@given(st.integers(1, 12), st.integers(1, 5), st.sampled_from([1, 2, 3, None]), st.integers(0, 99))
def test_attention_maps_have_a_spectrum_of_ones(
    samples: int, channels: int, group_size: int | None, seed: int
) -> None:
    torch.manual_seed(seed)
    v = torch.randn(samples, channels, dtype=torch.float64)
    p = attention_maps(v, torch.arange(channels) % samples, group_size)
    singular = torch.linalg.svdvals(p)
    torch.testing.assert_close(singular, torch.ones_like(singular))


def test_theorem_2_sinkhorn_tends_to_the_group_sort() -> None:
    """As tau falls, doubly stochastic attention between channels 0 and c tends to T_c S_{J_c}."""
    torch.manual_seed(0)
    group, tau = 4, 0.1
    v = torch.randperm(24).reshape(12, 2).double()
    steps = torch.tensor([0, 5])
    shifted = v[:, 1].roll(5)
    limit = torch.zeros(12, 12, dtype=torch.float64)
    for start in range(0, 12, group):
        rows = slice(start, start + group)
        log_t = torch.outer(v[rows, 0], shifted[rows]) / tau
        for _ in range(1000):
            log_t = log_t - log_t.logsumexp(1, keepdim=True)
            log_t = log_t - log_t.logsumexp(0, keepdim=True)
        limit[rows, rows] = log_t.exp()
    shift = torch.eye(12, dtype=torch.float64).roll(5, 0)
    p = attention_maps(v, steps, group)[1]
    torch.testing.assert_close(limit @ shift, p, atol=1e-2, rtol=0)
