"""Wrong arguments: what was given, what was expected, and which argument."""

import warnings

import pytest
import torch

from shiftsort import attention_maps, csp, permutation

V = torch.randn(2, 9, 3)
STEPS = [0, 1, 2]


@pytest.mark.parametrize("function", [csp, permutation, attention_maps])
@pytest.mark.parametrize(
    ("v", "error", "message"),
    [
        ([[1.0]], TypeError, "v must be a tensor, got list"),
        (torch.randn(3), ValueError, r"v must have a sample and a channel.*got shape \(3,\)"),
        (torch.tensor(1.0), ValueError, r"v must have a sample and a channel.*got shape \(\)"),
        (torch.arange(6).reshape(2, 3), TypeError, "v must be one of float64.*got int64"),
        (torch.ones(2, 3, dtype=torch.bool), TypeError, "v must be one of float64.*got bool"),
        (torch.ones(2, 3, dtype=torch.cfloat), TypeError, "v must be one of .*got complex64"),
    ],
)
def test_values(function: object, v: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        function(v, STEPS)


@pytest.mark.parametrize(
    ("steps", "error", "message"),
    [
        ([0, 1], ValueError, r"one integer for each of v's 3 channels, got shape \(2,\)"),
        ([[0, 1, 2]], ValueError, r"one integer for each of v's 3 channels, got shape \(1, 3\)"),
        (3, ValueError, r"one integer for each of v's 3 channels, got shape \(\)"),
        ([0.0, 1.0, 2.0], TypeError, "steps must be integers, got float32"),
        (torch.zeros(3), TypeError, "steps must be integers, got float32"),
        (torch.zeros(3, dtype=torch.cfloat), TypeError, "steps must be integers, got complex64"),
        ([False, True, True], TypeError, "steps must be integers, got bool"),
        ("012", TypeError, "steps must be integers, got '012'"),
        (None, TypeError, "steps must be integers, got None"),
        ([1, 1, 2], ValueError, r"steps\[0\] must be 0 with order='reference'.*got 1"),
        (torch.tensor([-9, 1, 2]), ValueError, r"steps\[0\] must be 0 .*got -9"),
    ],
)
def test_steps(steps: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        csp(V, steps)


def test_any_first_step_is_fine_where_there_is_no_reference() -> None:
    csp(V, [5, 1, 2], order="ascending")


@pytest.mark.parametrize(
    ("group_size", "error", "message"),
    [
        (0, ValueError, r"group_size must be at least 1 \(or None for one group\), got 0"),
        (-2, ValueError, "group_size must be at least 1 .*got -2"),
        (True, TypeError, "group_size must be a positive integer or None, got bool"),
        (2.0, TypeError, "group_size must be a positive integer or None, got float"),
        ("2", TypeError, "group_size must be a positive integer or None, got str"),
    ],
)
def test_group_size(group_size: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        csp(V, STEPS, group_size)


@pytest.mark.parametrize("order", ["descending", "Reference", None, 1])
def test_order(order: object) -> None:
    with pytest.raises(
        ValueError, match=f"order must be 'reference' or 'ascending', got {order!r}"
    ):
        csp(V, STEPS, order=order)


@pytest.mark.parametrize("dim", [0, 3, -3, None])
def test_dim(dim: object) -> None:
    with pytest.raises(ValueError, match=f"dim must be -2 or -1 .*got {dim}"):
        csp(V, STEPS, dim=dim)


@pytest.mark.parametrize(
    ("lengths", "error", "message"),
    [
        ([9], ValueError, r"each of v's 2 sequences, shape \(2,\), got shape \(1,\)"),
        ([[9, 9]], ValueError, r"each of v's 2 sequences, shape \(2,\), got shape \(1, 2\)"),
        ([9, -1], ValueError, "lengths must lie between 0 and v's 9 samples, got -1 to 9"),
        ([10, 3], ValueError, "lengths must lie between 0 and v's 9 samples, got 3 to 10"),
        (torch.tensor([10, 3]), ValueError, "lengths must lie between 0 and v's 9 samples"),
        ([9.0, 3.0], TypeError, "lengths must be integers, got float32"),
        (torch.tensor([True, False]), TypeError, "lengths must be integers, got bool"),
        ("99", TypeError, "lengths must be integers, got '99'"),
    ],
)
def test_lengths(lengths: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        csp(V, STEPS, lengths=lengths)


def test_devices() -> None:
    v = torch.empty(2, 9, 3, device="meta")
    with pytest.raises(ValueError, match="steps must be on v's device meta, got cpu"):
        csp(v, torch.tensor(STEPS))
    with pytest.raises(ValueError, match="lengths must be on v's device meta, got cpu"):
        csp(v, STEPS, lengths=torch.tensor([9, 9]))


@pytest.mark.gpu
def test_devices_with_a_gpu() -> None:
    with pytest.raises(ValueError, match="steps must be on v's device cuda:0, got cpu"):
        csp(V.cuda(), torch.tensor(STEPS))
    with pytest.raises(ValueError, match="steps must be on v's device cpu, got cuda:0"):
        csp(V, torch.tensor(STEPS).cuda())
    with pytest.raises(ValueError, match=r"steps\[0\] must be 0"):
        csp(V.cuda(), torch.tensor([1, 1, 2]).cuda())


@pytest.mark.parametrize("group_size", [1, 2, 3, None])
@pytest.mark.parametrize("shape", [(0, 9, 3), (2, 0, 3), (2, 1, 3), (0, 0, 3), (0, 3), (1, 3)])
def test_empty_and_single_samples_are_no_error(
    shape: tuple[int, ...], group_size: int | None
) -> None:
    v = torch.randn(shape, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = csp(v, STEPS, group_size)
        assert torch.equal(y, v)
        y.sum().backward()
    assert torch.equal(v.grad, torch.ones_like(v))
    assert torch.equal(permutation(v, STEPS, group_size), torch.zeros_like(v).long())
    assert attention_maps(v, STEPS, group_size).shape == (*shape[:-2], 3, shape[-2], shape[-2])


@pytest.mark.parametrize(
    "call",
    [
        lambda: csp(V, [0, 1]),
        lambda: csp(V, [1, 1, 2]),
        lambda: csp(V, STEPS, 0),
        lambda: csp(V, STEPS, order="up"),
        lambda: csp(V, STEPS, lengths=[9]),
    ],
)
def test_messages_are_short(call: object) -> None:
    with pytest.raises(ValueError, match=r"\w") as caught:
        call()
    assert len(str(caught.value)) < 200
