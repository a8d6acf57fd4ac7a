"""What torch.compile, torch.export, torch.func and autocast see is one operator, and the same."""

import itertools
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

from shiftsort import CSP, attention_maps, csp, permutation
from shiftsort.operator.ops import csp_op, csp_permute_op

GROUPS = [1, 2, 3, None]
ORDERS = ["reference", "ascending"]
LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "token-major": lambda x: x.contiguous(),
    "channel-major": lambda x: x.mT.contiguous().mT,
    "channel-outer": lambda x: x.permute(2, 0, 1).contiguous().permute(1, 2, 0),
}
STEPS = torch.tensor([0, 2, 7, 5])

pytestmark = pytest.mark.usefixtures("fresh_compiler")


def compiled(f: Callable[..., object], **options: object) -> Callable[..., object]:
    """One graph or an error. All of torch.compile but the making of machine code."""
    return torch.compile(f, fullgraph=True, backend="aot_eager", **options)


# torch.library


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("lengths", [None, torch.tensor([9, 4])], ids=["full", "lengths"])
@pytest.mark.parametrize("group_size", GROUPS)
def test_opcheck(group_size: int | None, lengths: Tensor | None, layout: str) -> None:
    for ascending in (False, True):
        v = LAYOUTS[layout](torch.randn(2, 9, 4)).requires_grad_()
        arguments = (v, STEPS, lengths, group_size, ascending, True)
        assert set(torch.library.opcheck(csp_op, arguments).values()) == {"SUCCESS"}
    _, packed = csp_op(*arguments)
    for inverse in (False, True):
        arguments = (v, packed, STEPS, lengths, group_size, inverse)
        assert set(torch.library.opcheck(csp_permute_op, arguments).values()) == {"SUCCESS"}


def test_opcheck_of_two_bytes_a_sample() -> None:
    v = torch.randn(1, 257, 2, requires_grad=True)
    arguments = (v, STEPS[:2], None, None, False, True)
    assert set(torch.library.opcheck(csp_op, arguments).values()) == {"SUCCESS"}
    _, packed = csp_op(*arguments)
    assert packed.dtype == torch.uint16
    arguments = (v, packed, STEPS[:2], None, None, True)
    assert set(torch.library.opcheck(csp_permute_op, arguments).values()) == {"SUCCESS"}


def test_opcheck_without_a_gradient() -> None:
    arguments = (torch.randn(2, 9, 4), STEPS, None, 2, False, False)
    assert set(torch.library.opcheck(csp_op, arguments).values()) == {"SUCCESS"}


@pytest.mark.parametrize(
    "shape", [(2, 9, 4), (1, 9, 4), (2, 1, 4), (2, 9, 1), (0, 9, 4), (2, 0, 4)]
)
@pytest.mark.parametrize("group_size", GROUPS)
def test_a_fake_result_has_the_strides_of_the_real_one(
    group_size: int | None, shape: tuple[int, int, int]
) -> None:
    mode = FakeTensorMode()
    steps = STEPS[: shape[2]]
    wide = torch.randn(shape[0], 2 * shape[1], 3 * shape[2])[:, ::2, ::3]
    layouts = [change(torch.randn(shape)) for change in LAYOUTS.values()]
    layouts += [wide, torch.randn(1, 1, 1).expand(shape)]
    for v, keep in itertools.product(layouts, (True, False)):
        real = csp_op(v, steps, None, group_size, False, keep)
        with mode:
            fake = csp_op(
                mode.from_tensor(v), mode.from_tensor(steps), None, group_size, False, keep
            )
        for a, b in zip(real, fake, strict=True):
            assert (a.shape, a.stride(), a.dtype) == (b.shape, b.stride(), b.dtype)


def test_a_layout_that_a_kernel_likes_is_kept() -> None:
    for change in LAYOUTS.values():
        v = change(torch.randn(3, 8, 4))
        assert csp(v, STEPS).stride() == v.stride()


# torch.compile


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("dim", [-2, -1])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("group_size", GROUPS)
def test_compile(group_size: int | None, order: str, dim: int, dynamic: bool) -> None:
    def f(v: Tensor, steps: Tensor, lengths: Tensor | None) -> Tensor:
        return csp(v.sin(), steps, group_size, order=order, dim=dim, lengths=lengths).cos()

    g = compiled(f, dynamic=dynamic)
    for samples in (8, 13) if dynamic else (8,):
        v = torch.randn(2, samples, 4) if dim == -2 else torch.randn(2, 4, samples)
        for lengths in (None, torch.tensor([samples, 3])):
            mine, theirs = (v.clone().requires_grad_() for _ in range(2))
            y, expected = g(mine, STEPS, lengths), f(theirs, STEPS, lengths)
            assert torch.equal(y, expected)
            y.square().sum().backward()
            expected.square().sum().backward()
            assert torch.equal(mine.grad, theirs.grad)


def test_compile_to_machine_code() -> None:
    def f(v: Tensor) -> Tensor:
        return csp(v * 2, STEPS, 2).sum(1) + csp(v.mT * 3, STEPS, None, dim=-1).sum(-1)

    v = torch.randn(2, 8, 4, requires_grad=True)
    y = torch.compile(f, fullgraph=True)(v)
    torch.testing.assert_close(y, f(v))
    (mine,) = torch.autograd.grad(y.square().sum(), v)
    (theirs,) = torch.autograd.grad(f(v).square().sum(), v)
    torch.testing.assert_close(mine, theirs)


def test_compile_with_a_list_of_steps() -> None:
    v = torch.randn(2, 8, 4)
    assert torch.equal(compiled(lambda v: csp(v, [0, 2, 7, 5]))(v), csp(v, STEPS))


def test_compile_permutation_and_maps() -> None:
    v = torch.randn(2, 8, 4)
    assert torch.equal(compiled(lambda v: permutation(v, STEPS))(v), permutation(v, STEPS))
    assert torch.equal(compiled(lambda v: attention_maps(v, STEPS))(v), attention_maps(v, STEPS))


def test_dynamic_lengths_share_a_graph() -> None:
    graphs = 0

    def count(graph: torch.fx.GraphModule, _: object) -> Callable[..., object]:
        nonlocal graphs
        graphs += 1
        return graph

    f = torch.compile(lambda v: csp(v, STEPS, 2), fullgraph=True, backend=count, dynamic=True)
    for samples in (8, 9, 16, 31, 200):
        v = torch.randn(2, samples, 4)
        assert torch.equal(f(v), csp(v, STEPS, 2))
    assert graphs == 1


# torch.export


class Model(torch.nn.Module):
    """csp alone, with the steps as a buffer: torch.export takes no global tensors."""

    def __init__(self, group_size: int | None) -> None:
        super().__init__()
        self.group_size = group_size
        self.register_buffer("steps", STEPS.clone())

    def forward(self, v: Tensor, lengths: Tensor) -> Tensor:
        return csp(v, self.steps, self.group_size, lengths=lengths)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("group_size", GROUPS)
def test_export(group_size: int | None, strict: bool) -> None:
    model = Model(group_size)
    shapes = {
        "v": {0: torch.export.Dim.AUTO, 1: torch.export.Dim.AUTO},
        "lengths": {0: torch.export.Dim.AUTO},
    }
    program = torch.export.export(
        model, (torch.randn(2, 8, 4), torch.tensor([8, 4])), dynamic_shapes=shapes, strict=strict
    )
    assert any("shiftsort.csp" in str(node.target) for node in program.graph.nodes)
    v, lengths = torch.randn(3, 11, 4), torch.tensor([11, 0, 6])
    assert torch.equal(program.module()(v, lengths), model(v, lengths))


@pytest.mark.parametrize("grad", [False, True])
def test_export_for_lengths_on_both_sides_of_a_large_group(grad: bool) -> None:
    model = Model(300)
    n = torch.export.Dim("n", min=2, max=1000)
    program = torch.export.export(
        model,
        (torch.randn(2, 64, 4, requires_grad=grad), torch.tensor([64, 4])),
        dynamic_shapes={"v": {1: n}, "lengths": None},
    ).module()
    for samples in (5, 299, 300, 301, 650):
        v, lengths = torch.randn(2, samples, 4), torch.tensor([samples, 3])
        mine, theirs = (v.clone().requires_grad_(grad) for _ in range(2))
        y, expected = program(mine, lengths), model(theirs, lengths)
        assert torch.equal(y, expected)
        if grad:
            y.square().sum().backward()
            expected.square().sum().backward()
            assert torch.equal(mine.grad, theirs.grad)


# torch.func


@pytest.mark.parametrize("in_dim", [0, 1, 2, 3])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("group_size", GROUPS)
def test_vmap(group_size: int | None, order: str, in_dim: int) -> None:
    v = torch.randn(3, 2, 8, 4)
    y = vmap(lambda v: csp(v, STEPS, group_size, order=order), in_dims=in_dim)(v.movedim(0, in_dim))
    assert torch.equal(y, csp(v, STEPS, group_size, order=order))


@pytest.mark.parametrize("group_size", GROUPS)
def test_vmap_over_any_of_the_arguments(group_size: int | None) -> None:
    v = torch.randn(3, 2, 8, 4)
    steps = torch.tensor([[0, 1, 2, 3], [0, 7, 6, 5], [0, 0, 0, 4]])
    lengths = torch.tensor([[8, 4], [0, 1], [7, 8]])
    for in_dims in itertools.product((0, None), repeat=3):
        arguments = [
            x if dim == 0 else x[1] for x, dim in zip((v, steps, lengths), in_dims, strict=True)
        ]
        if all(dim is None for dim in in_dims):
            continue
        y = vmap(
            lambda v, s, n: csp(v, s, group_size, lengths=n),
            in_dims=in_dims,
        )(*arguments)
        for i in range(3):
            one = [x[i] if dim == 0 else x for x, dim in zip(arguments, in_dims, strict=True)]
            assert torch.equal(y[i], csp(one[0], one[1], group_size, lengths=one[2]))


def test_vmap_twice() -> None:
    v = torch.randn(3, 2, 8, 4)
    assert torch.equal(vmap(vmap(lambda v: csp(v, STEPS)))(v), csp(v, STEPS))


@pytest.mark.parametrize("shape", [(0, 8, 4), (0, 2, 8, 4), (3, 0, 8, 4)])
def test_vmap_over_nothing(shape: tuple[int, ...]) -> None:
    v = torch.randn(shape)
    assert vmap(lambda v: csp(v, STEPS))(v).shape == shape
    steps = torch.zeros(0, 4, dtype=torch.int64)
    assert vmap(lambda s: csp(v, s))(steps).shape == (0, *shape)


def test_vmap_of_permutation_and_maps() -> None:
    v = torch.randn(3, 8, 4)
    assert torch.equal(vmap(lambda v: permutation(v, STEPS))(v), permutation(v, STEPS))
    assert torch.equal(vmap(lambda v: attention_maps(v, STEPS))(v), attention_maps(v, STEPS))


def weighted(v: Tensor, group_size: int | None) -> Tensor:
    weight = torch.arange(1.0, v.numel() + 1, dtype=v.dtype).reshape(v.shape)
    return (csp(v, STEPS, group_size).square() * weight).sum()


def plain_gradient(v: Tensor, group_size: int | None) -> Tensor:
    v = v.detach().requires_grad_()
    return torch.autograd.grad(weighted(v, group_size), v)[0]


@pytest.mark.parametrize("group_size", GROUPS)
def test_grad_vmap_of_grad_and_grad_of_vmap(group_size: int | None) -> None:
    v = torch.randn(3, 8, 4)
    expected = torch.stack([plain_gradient(x, group_size) for x in v])
    assert torch.equal(grad(weighted)(v[0], group_size), expected[0])
    assert torch.equal(vmap(grad(weighted), (0, None))(v, group_size), expected)
    of_vmap = grad(lambda v: vmap(weighted, (0, None))(v, group_size).sum())
    assert torch.equal(of_vmap(v), expected)


@pytest.mark.parametrize("group_size", GROUPS)
def test_autograd_through_vmap(group_size: int | None) -> None:
    v = torch.randn(3, 8, 4, requires_grad=True)
    vmap(weighted, (0, None))(v, group_size).sum().backward()
    assert torch.equal(v.grad, torch.stack([plain_gradient(x, group_size) for x in v]))


@pytest.mark.parametrize("group_size", GROUPS)
def test_jacobians_and_hessians(group_size: int | None) -> None:
    v = torch.randn(5, 4, dtype=torch.float64)
    f = lambda v: csp(v, STEPS, group_size)  # noqa: E731
    p = permutation(v, STEPS, group_size)
    expected = torch.zeros(5, 4, 5, 4, dtype=torch.float64)
    for n, c in itertools.product(range(5), range(4)):
        expected[n, c, p[n, c], c] = 1
    assert torch.equal(jacrev(f)(v), expected)
    assert torch.equal(jacfwd(f)(v), expected)
    _, pull = vjp(f, v)
    assert torch.equal(pull(torch.ones_like(v))[0], torch.ones_like(v))
    _, tangent = jvp(f, (v,), (v,))
    assert torch.equal(tangent, f(v))
    weight = torch.arange(1.0, 21, dtype=torch.float64).reshape(5, 4)
    curvature = 2 * torch.empty_like(weight).scatter_(0, p, weight)
    full = hessian(weighted)(v, group_size).reshape(20, 20)
    assert torch.equal(full, torch.diag(curvature.reshape(-1)))


def test_functional_call_per_sample_gradients() -> None:
    model = CSP(5, channels=7)
    parameters = {k: p.detach() for k, p in model.named_parameters()}
    x = torch.randn(3, 8, 5)

    def loss(parameters: dict[str, Tensor], x: Tensor) -> Tensor:
        return functional_call(model, parameters, (x,)).square().sum(-1).cos().sum()

    each = vmap(grad(loss), (None, 0))(parameters, x)["weight"]
    for i in range(3):
        (expected,) = torch.autograd.grad(model(x[i]).square().sum(-1).cos().sum(), model.weight)
        torch.testing.assert_close(each[i], expected)


@pytest.mark.parametrize("group_size", GROUPS)
def test_transforms_inside_compile(group_size: int | None) -> None:
    v = torch.randn(3, 8, 4, requires_grad=True)
    mapped = lambda v: vmap(lambda v: csp(v, STEPS, group_size))(v)  # noqa: E731
    y = compiled(mapped)(v)
    assert torch.equal(y, csp(v, STEPS, group_size))
    weight = torch.randn_like(v)
    (mine,) = torch.autograd.grad(y, v, weight)
    (theirs,) = torch.autograd.grad(csp(v, STEPS, group_size), v, weight)
    assert torch.equal(mine, theirs)
    v = v.detach()[0]
    mine = compiled(lambda v: grad(weighted)(v, group_size))(v)
    assert torch.equal(mine, plain_gradient(v, group_size))


# autocast


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_autocast_keeps_the_dtype(dtype: torch.dtype) -> None:
    v = torch.randn(2, 8, 4, dtype=dtype, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = csp(v, STEPS)
    assert y.dtype == dtype
    assert torch.equal(y, csp(v, STEPS))
    y.sum().backward()
    assert v.grad.dtype == dtype


def test_the_module_under_autocast_permutes_what_the_projection_gives() -> None:
    model = CSP(5)
    x = torch.randn(2, 8, 5)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = model(x)
        y_compiled = compiled(model)(x)
    assert y.dtype == torch.bfloat16
    assert torch.equal(y, y_compiled)
    y.sum().backward()
    assert model.weight.grad.dtype == torch.float32
