"""csp and permutation against the spec, and against a NumPy version that shares nothing with it.

Values are compared bit by bit, so that a zero keeps its sign; all NaN count as the same.
"""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from shiftsort import attention_maps, csp, permutation
from shiftsort.operator.spec import csp_spec

BITS = {2: torch.int16, 4: torch.int32, 8: torch.int64}
UGLY = [float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 1.0, -1.0, 6e-8]


def bits(x: Tensor) -> Tensor:
    return x.masked_fill(x.isnan(), torch.nan).contiguous().view(BITS[x.element_size()])


def permutation_numpy(
    v_nc: np.ndarray, steps: np.ndarray, group_size: int | None, order: str
) -> np.ndarray:
    """p with y[n, c] = v[p[n, c], c], of one sequence."""
    samples, channels = v_nc.shape
    source_nc = np.empty((samples, channels), dtype=np.int64)
    for c in range(channels):
        # int() since NumPy's integers would overflow in the roll of a huge step
        source = np.roll(np.arange(samples), int(steps[c]) % max(samples, 1))
        for start in range(0, samples, group_size or max(samples, 1)):
            group = slice(start, start + group_size if group_size else samples)
            rising = source[group][np.argsort(v_nc[source[group], c], kind="stable")]
            if order == "reference":
                rank = np.argsort(np.argsort(v_nc[group, 0], kind="stable"), kind="stable")
                rising = rising[rank]
            source[group] = rising
        source_nc[:, c] = source
    return source_nc


@dataclass
class Case:
    """Arguments of csp, and how to see its tensors as (B, N, C)."""

    v: Tensor
    steps: Tensor
    group_size: int | None
    order: str
    dim: int
    lengths: Tensor | None

    def arguments(self) -> dict[str, object]:
        return {
            "steps": self.steps,
            "group_size": self.group_size,
            "order": self.order,
            "dim": self.dim,
            "lengths": self.lengths,
        }

    def as_bnc(self, x: Tensor) -> Tensor:
        x = x.transpose(-1, -2) if self.dim == -1 else x
        return x.reshape(-1, *x.shape[-2:]) if x.numel() else x.reshape(self.batch, *x.shape[-2:])

    @property
    def batch(self) -> int:
        return int(np.prod(self.v.shape[:-2]))


def values_of_kind(kind: str, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    if kind == "ties":
        return rng.integers(0, 3, shape).astype(np.float64)
    if kind == "ugly":
        return rng.choice(UGLY, shape)
    return rng.standard_normal(shape)


def tell_nans_apart(x: Tensor, rng: np.random.Generator) -> None:
    """Give each NaN a payload and a sign, neither of which may matter."""
    as_bits = x.view(BITS[x.element_size()])
    payload = torch.from_numpy(rng.integers(0, 32, x.shape)).to(as_bits.dtype)
    sign = torch.from_numpy(rng.integers(0, 2, x.shape)).to(as_bits.dtype) << (
        8 * x.element_size() - 1
    )
    x.copy_(torch.where(x.isnan(), as_bits | payload | sign, as_bits).view(x.dtype))


def lay_out(x_bnc: Tensor, layout: str) -> Tensor:
    """The same values, differently in memory."""
    if layout == "channel-major":
        return x_bnc.mT.contiguous().mT
    if layout == "channel-outer":
        return x_bnc.permute(2, 0, 1).contiguous().permute(1, 2, 0)
    if layout == "sample-outer":
        return x_bnc.transpose(0, 1).contiguous().transpose(0, 1)
    if layout == "strided":
        batch, samples, channels = x_bnc.shape
        wide = torch.full((batch, 2 * samples + 1, 3 * channels), torch.nan, dtype=x_bnc.dtype)
        view = wide[:, 1::2, ::3]
        return view.copy_(x_bnc)
    if layout == "expanded batch":
        return x_bnc[:1].expand_as(x_bnc)
    if layout == "expanded channels":
        return x_bnc[:, :, :1].expand_as(x_bnc)
    if layout == "expanded samples":
        return x_bnc[:, :1].expand_as(x_bnc)
    return x_bnc.contiguous()


LAYOUTS = (
    "token-major",
    "channel-major",
    "channel-outer",
    "sample-outer",
    "strided",
    "expanded batch",
    "expanded channels",
    "expanded samples",
)


@st.composite
def cases(draw: st.DrawFn, most_samples: int, most_channels: int) -> Case:
    samples = draw(st.integers(0, most_samples))
    channels = draw(st.integers(1, most_channels))
    leading = draw(st.sampled_from([(), (1,), (3,), (2, 2), (0,), (2, 0)]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    batch = int(np.prod(leading))
    kind = draw(st.sampled_from(["distinct", "ties", "ugly"]))
    dtype = draw(st.sampled_from([torch.float64, torch.float32, torch.bfloat16, torch.float16]))
    v_bnc = torch.from_numpy(values_of_kind(kind, rng, (batch, samples, channels))).to(dtype)
    tell_nans_apart(v_bnc, rng)
    v = lay_out(v_bnc, draw(st.sampled_from(LAYOUTS)))
    v = v[0] if leading == () else v.unflatten(0, leading) if len(leading) > 1 else v
    dim = draw(st.sampled_from([-2, -1]))
    order = draw(st.sampled_from(["reference", "ascending"]))
    steps = torch.from_numpy(rng.integers(-(10**9), 10**9, channels))
    if order == "reference":
        steps[0] = 0
    group_size = draw(st.none() | st.sampled_from([1, 2, 2, 3]) | st.integers(1, samples + 2))
    lengths = None
    if draw(st.booleans()):
        lengths = torch.from_numpy(rng.integers(0, samples + 1, leading)).reshape(leading)
    return Case(v.mT if dim == -1 else v, steps, group_size, order, dim, lengths)


def expected_permutation(case: Case) -> Tensor:
    v_bnc = case.as_bnc(case.v).double().numpy()
    batch, samples, _ = v_bnc.shape
    p_bnc = np.broadcast_to(np.arange(samples)[None, :, None], v_bnc.shape).copy()
    lengths = [samples] * batch if case.lengths is None else case.lengths.reshape(-1).tolist()
    for b, length in enumerate(lengths):
        p_bnc[b, :length] = permutation_numpy(
            v_bnc[b, :length], case.steps.numpy(), case.group_size, case.order
        )
    return torch.from_numpy(p_bnc)


@given(cases(most_samples=300, most_channels=40))
def test_csp_and_its_gradient_agree_with_numpy(case: Case) -> None:
    p_bnc = expected_permutation(case)
    v = case.v.detach().requires_grad_()
    y = csp(v, **case.arguments())
    assert y.shape == v.shape
    assert y.dtype == v.dtype
    v_bnc = case.as_bnc(case.v)
    assert torch.equal(bits(case.as_bnc(y.detach())), bits(v_bnc).gather(1, p_bnc))

    grad_y = torch.randn(v.shape, dtype=torch.float64).to(v.dtype)
    (grad_v,) = torch.autograd.grad(y, v, grad_y)
    expected = torch.empty_like(v_bnc).scatter_(1, p_bnc, case.as_bnc(grad_y))
    assert torch.equal(case.as_bnc(grad_v), expected)


@given(cases(most_samples=300, most_channels=40))
def test_permutation_agrees_with_numpy(case: Case) -> None:
    p = permutation(case.v, **case.arguments())
    assert p.dtype == torch.int64
    assert torch.equal(case.as_bnc(p), expected_permutation(case))


@given(cases(most_samples=17, most_channels=5))
def test_csp_agrees_with_the_spec(case: Case) -> None:
    lengths = None if case.lengths is None else case.lengths.reshape(-1)
    expected = csp_spec(
        case.as_bnc(case.v), case.steps, case.group_size, order=case.order, lengths=lengths
    )
    y = csp(case.v, **case.arguments())
    assert torch.equal(bits(case.as_bnc(y)), bits(expected))


@given(cases(most_samples=60, most_channels=6))
def test_no_value_is_lost_and_a_second_run_is_the_same(case: Case) -> None:
    y = csp(case.v, **case.arguments())
    before, after = (bits(case.as_bnc(x)).sort(dim=1).values for x in (case.v, y))
    assert torch.equal(before, after)
    assert torch.equal(bits(y), bits(csp(case.v, **case.arguments())))


@given(cases(most_samples=40, most_channels=5))
def test_attention_maps_are_permutation_matrices_that_give_y(case: Case) -> None:
    v = torch.nan_to_num(case.v.double(), posinf=2.0, neginf=-2.0)
    p_cnn = attention_maps(v, **case.arguments())
    channels_first = v if case.dim == -1 else v.mT
    assert p_cnn.shape == (*channels_first.shape, channels_first.shape[-1])
    assert bool((p_cnn.sum(-1) == 1).all())
    assert bool((p_cnn.sum(-2) == 1).all())
    y = csp(v, **case.arguments())
    y_first = y if case.dim == -1 else y.mT
    assert torch.equal((p_cnn @ channels_first[..., None])[..., 0], y_first)


def test_v_is_not_written_to() -> None:
    v = torch.randn(2, 9, 4)
    before = v.clone()
    for group_size in (1, 2, 3, None):
        csp(v, [0, 1, 2, 3], group_size)
    assert torch.equal(v, before)


def test_the_result_never_shares_memory_with_v() -> None:
    v = torch.randn(2, 8, 3)
    for group_size in (1, 2, 3, None):
        y = csp(v, [0, 0, 0], group_size)
        assert y.untyped_storage().data_ptr() != v.untyped_storage().data_ptr()


@pytest.mark.parametrize("steps", [range(4), (0, 1, 2, 3), np.arange(4), list(np.arange(4))])
def test_steps_of_any_integer_kind(steps: object) -> None:
    v = torch.randn(2, 9, 4)
    assert torch.equal(csp(v, steps), csp(v, torch.arange(4)))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int16, torch.uint8])
def test_steps_of_any_integer_dtype(dtype: torch.dtype) -> None:
    v = torch.randn(2, 9, 4)
    assert torch.equal(csp(v, torch.arange(4, dtype=dtype)), csp(v, torch.arange(4)))


def test_steps_made_of_numpy_memory_are_a_copy() -> None:
    steps = np.array([0, 1, 2])
    v = torch.randn(7, 3, requires_grad=True)
    y = csp(v, steps)
    expected = torch.autograd.grad(y.square().sum(), v, retain_graph=True)[0]
    steps += 1
    assert torch.equal(torch.autograd.grad(y.square().sum(), v)[0], expected)


def test_lengths_of_any_kind_and_shape() -> None:
    v = torch.randn(2, 2, 9, 4)
    steps = torch.arange(4)
    expected = csp(v, steps, lengths=torch.tensor([[9, 0], [4, 5]]))
    for lengths in ([9, 0, 4, 5], np.array([[9, 0], [4, 5]]), torch.tensor([9, 0, 4, 5]).int()):
        assert torch.equal(csp(v, steps, lengths=lengths), expected)
    assert csp(v[:0], steps, lengths=[]).shape == (0, 2, 9, 4)


def test_padding_is_untouched_and_does_not_leak() -> None:
    v = torch.randn(3, 20, 6)
    lengths = torch.tensor([20, 7, 0])
    poisoned = v.clone()
    for b, length in enumerate(lengths.tolist()):
        poisoned[b, length:] = torch.nan
    for group_size in (1, 2, 5, None):
        y = csp(v, range(6), group_size, lengths=lengths)
        y_poisoned = csp(poisoned, range(6), group_size, lengths=lengths)
        for b, length in enumerate(lengths.tolist()):
            assert torch.equal(y[b, :length], y_poisoned[b, :length])
            assert torch.equal(y[b, length:], v[b, length:])
            assert bool(y_poisoned[b, length:].isnan().all())


def test_no_channels() -> None:
    assert csp(torch.randn(2, 9, 0), []).shape == (2, 9, 0)


@pytest.mark.parametrize("order", ["reference", "ascending"])
@pytest.mark.parametrize("group_size", [1, 2, 3, None])
def test_inference_mode_leaves_nothing_behind(group_size: int | None, order: str) -> None:
    steps = [0, 1, 2]
    v = torch.randn(2, 9, 3)
    with torch.inference_mode():
        inside = csp(v, steps, group_size, order=order)
        csp(torch.randn(2, 9, 3), torch.tensor(steps), group_size, order=order)
    v.requires_grad_()
    y = csp(v, steps, group_size, order=order)
    assert torch.equal(inside, y)
    y.sum().backward()
    assert torch.equal(v.grad, torch.ones_like(v))


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_steps_are_checked_again_when_they_change(device: str) -> None:
    steps = torch.tensor([0, 1, 2], device=device)
    v = torch.randn(5, 3, device=device)
    csp(v, steps)
    steps[0] = 1
    with pytest.raises(ValueError, match="steps\\[0\\] must be 0"):
        csp(v, steps)
