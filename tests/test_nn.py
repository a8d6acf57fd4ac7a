"""CSP as a module: what it keeps, what it does not, and what it costs under torch.compile."""

import copy
import io
import pickle
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.utils import counters
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.func import functional_call, grad

from seen_operators import SeenOperators
from shiftsort import CSP, csp, shift_steps
from shiftsort.operator.schedule import KINDS


def expected(model: CSP, x: Tensor, lengths: Tensor | None = None) -> Tensor:
    v = nn.functional.linear(x, model.weight, model.bias)
    steps = shift_steps(
        model.shift,
        x.shape[-2],
        model.channels,
        layer=model.layer,
        depth=model.depth,
        heads=model.heads,
    )
    return csp(v, steps, model.group_size, order=model.order, lengths=lengths)


@pytest.mark.parametrize("order", ["reference", "ascending"])
@pytest.mark.parametrize("shift", KINDS)
@pytest.mark.parametrize("group_size", [1, 2, 5, None])
def test_is_csp_of_the_projection(group_size: int | None, shift: str, order: str) -> None:
    model = CSP(6, group_size=group_size, shift=shift, order=order, layer=1, depth=2)
    x = torch.randn(2, 11, 6)
    assert torch.equal(model(x), expected(model, x))
    lengths = torch.tensor([11, 4])
    assert torch.equal(model(x, lengths), expected(model, x, lengths))


def test_wide_channels() -> None:
    model = CSP(6, channels=20)
    assert model.weight.shape == (20, 6)
    x = torch.randn(2, 3, 11, 6)
    y = model(x)
    assert y.shape == (2, 3, 11, 20)
    assert torch.equal(y, expected(model, x))


def test_any_length_at_run_time_and_back() -> None:
    model = CSP(6)
    for samples in (11, 4, 1, 0, 30, 11):
        x = torch.randn(2, samples, 6)
        assert torch.equal(model(x), expected(model, x))


def test_steps_are_made_once_for_a_length(monkeypatch: pytest.MonkeyPatch) -> None:
    import shiftsort.nn

    made: list[int] = []

    def counting(kind: str, samples: int, *others: int, **more: int) -> Tensor:
        made.append(samples)
        return shift_steps(kind, samples, *others, **more)

    monkeypatch.setattr(shiftsort.nn, "shift_steps", counting)
    model = CSP(6)
    for samples in (11, 11, 11, 7, 7):
        model(torch.randn(2, samples, 6))
    assert made == [11, 7]


def test_the_state_dict_holds_w_alone() -> None:
    model = CSP(6, bias=False)
    model(torch.randn(2, 11, 6))
    assert list(model.state_dict()) == ["weight"]
    assert list(CSP(6, bias=True).state_dict()) == ["weight", "bias"]
    assert dict(model.named_buffers()).keys() == {"steps"}


def test_a_state_dict_loads_into_a_module_that_ran_at_another_length() -> None:
    first, second = CSP(6), CSP(6)
    first(torch.randn(2, 11, 6))
    second(torch.randn(2, 4, 6))
    second.load_state_dict(first.state_dict())
    x = torch.randn(2, 9, 6)
    assert torch.equal(first(x), second(x))


def test_initialisation_is_that_of_a_linear_layer() -> None:
    torch.manual_seed(1)
    model = CSP(64, channels=256, bias=True)
    torch.manual_seed(1)
    linear = nn.Linear(64, 256)
    assert model.weight.abs().max() <= 1 / 8
    assert model.bias.abs().max() <= 1 / 8
    torch.testing.assert_close(model.weight.std(), linear.weight.std(), rtol=0.05, atol=0)


@pytest.mark.parametrize(
    "copied",
    [
        copy.deepcopy,
        lambda model: pickle.loads(pickle.dumps(model)),
        lambda model: torch.load(saved(model), weights_only=False),
    ],
    ids=["deepcopy", "pickle", "torch.save"],
)
def test_copies(copied: Callable[[CSP], CSP]) -> None:
    model = CSP(6, shift="exponential", layer=1, depth=2)
    x, y = torch.randn(2, 11, 6), torch.randn(2, 5, 6)
    for _ in range(2):  # never run, and run
        twin = copied(model)
        assert torch.equal(twin(x), model(x))
        assert torch.equal(twin(y), model(y))
        assert twin.weight.data_ptr() != model.weight.data_ptr()
    model(x).sum().backward()
    assert twin.weight.grad is None


def saved(model: CSP) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return file


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_to_dtype_leaves_the_steps_integers(dtype: torch.dtype) -> None:
    model = CSP(6)
    model(torch.randn(2, 11, 6))
    model.to(dtype)
    assert model.steps.dtype == torch.int64
    x = torch.randn(2, 11, 6, dtype=dtype)
    assert model(x).dtype == dtype
    assert torch.equal(model(x), expected(model, x))


def test_the_buffer_follows_the_device() -> None:
    model = CSP(6)
    model(torch.randn(2, 11, 6))
    model.to("meta")
    assert model.steps.device.type == "meta"
    assert model(torch.randn(2, 11, 6, device="meta")).shape == (2, 11, 6)


@pytest.mark.gpu
def test_the_buffer_follows_to_a_gpu_and_back() -> None:
    model = CSP(6)
    x = torch.randn(2, 11, 6)
    model(x)
    model.cuda()
    assert model.steps.is_cuda
    v = nn.functional.linear(x.cuda(), model.weight)
    assert torch.equal(model(x.cuda()), csp(v, shift_steps("linear", 11, 6).cuda()))
    model.cpu()
    assert torch.equal(model(x), expected(model, x))


# Whoever changes the buffer behind the module's back must not change what it computes.


def test_a_module_made_on_the_meta_device() -> None:
    with torch.device("meta"):
        model = CSP(6)
    model(torch.randn(2, 11, 6, device="meta"))
    model.to_empty(device="cpu")
    model.reset_parameters()
    x = torch.randn(2, 11, 6)
    assert torch.equal(model(x), expected(model, x))


def test_to_empty_of_a_module_that_has_run() -> None:
    model = CSP(6)
    x = torch.randn(2, 11, 6)
    model(x)
    model.to_empty(device="cpu")
    model.reset_parameters()
    model.steps.fill_(3)  # as the unfilled memory may hold
    assert torch.equal(model(x), expected(model, x))


def test_a_buffer_written_by_another_process() -> None:
    """DistributedDataParallel copies the buffers of rank 0, whose batch may be longer."""
    model = CSP(6)
    x = torch.randn(2, 11, 6)
    model(x)
    model.steps.copy_(shift_steps("linear", 30, 6))
    assert torch.equal(model(x), expected(model, x))


def test_functional_call_with_the_buffers() -> None:
    model = CSP(6)
    x = torch.randn(2, 11, 6)
    everything = dict(model.named_parameters()) | dict(model.named_buffers())
    y = functional_call(model, everything, (x,))
    assert torch.equal(y, expected(model, x))
    assert torch.equal(model(x), expected(model, x))


def test_transforms_leave_nothing_behind() -> None:
    model = CSP(6)
    x = torch.randn(2, 11, 6)
    grad(lambda x: model(x).sum())(x)
    assert torch.equal(copy.deepcopy(model)(x), expected(model, x))
    model(x).sum().backward()
    assert model.weight.grad is not None


def test_inference_mode_leaves_nothing_behind() -> None:
    model = CSP(6)
    x = torch.randn(2, 11, 6)
    with torch.inference_mode():
        model(x)
    model(x).sum().backward()
    assert model.weight.grad is not None


def test_fake_tensors_leave_nothing_behind() -> None:
    model = CSP(6)
    x = torch.randn(2, 11, 6)
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        model(mode.from_tensor(x))
    y = model(x)
    assert type(y) is Tensor
    assert torch.equal(y, expected(model, x))


# The layer


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    ("shape", "strides"),
    [((2, 12, 6), (12, 1, 24)), ((3, 5, 6), (50, 10, 1))],
    ids=["channel-outer", "token-major"],
)
def test_a_layer_copies_nothing_to_change_a_layout(
    shape: tuple[int, ...], strides: tuple[int, ...], bias: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither does its gradient: what comes back lies as the values did."""
    monkeypatch.setattr(Tensor, "is_cuda", True)  # the way of a GPU
    model = nn.Sequential(CSP(6, channels=10, bias=bias), nn.Linear(10, 6, bias=bias))
    x = torch.randn(shape, requires_grad=True)
    with SeenOperators() as seen:
        (model(x) * 2).sum().backward()
    assert seen.names.count("aten.mm") + seen.names.count("aten.addmm") == 6
    assert seen.strides["shiftsort.csp"] == seen.strides["shiftsort.csp_permute"] == strides
    for name in ("aten.clone", "aten.copy_", "aten._to_copy", "aten.contiguous"):
        assert name not in seen.names


# torch.compile


class Recorder:
    """A backend that keeps the graphs it is given."""

    def __init__(self) -> None:
        self.graphs: list[torch.fx.GraphModule] = []

    def __call__(self, graph: torch.fx.GraphModule, _: object) -> Callable[..., object]:
        self.graphs.append(graph)
        return graph.forward


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("shift", KINDS)
def test_a_graph_makes_its_steps_on_the_device_of_x(shift: str, dynamic: bool) -> None:
    """A copy from the CPU at each call would stall the stream, and be no part of a CUDA graph."""
    recorder = Recorder()
    model = CSP(6, shift=shift, device="meta")
    torch.compile(model, fullgraph=True, backend=recorder, dynamic=dynamic)(
        torch.randn(2, 11, 6, device="meta")
    )
    (graph,) = recorder.graphs
    values = [node.meta.get("example_value") for node in graph.graph.nodes]
    devices = {value.device.type for value in values if isinstance(value, Tensor)}
    assert devices == {"meta"}


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize("shift", KINDS)
def test_a_static_length_compiles_once(shift: str) -> None:
    model = nn.Sequential(*(CSP(6, shift=shift, layer=layer, depth=2) for layer in range(2)))
    recorder = Recorder()
    compiled = torch.compile(model, fullgraph=True, backend=recorder)
    for _ in range(3):
        x = torch.randn(2, 11, 6)
        assert torch.equal(compiled(x), model(x))
    assert len(recorder.graphs) == 1


@pytest.mark.gpu
@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize("shift", KINDS)
def test_cuda_graphs_hold_the_whole_module(shift: str) -> None:
    model = nn.Sequential(*(CSP(64, shift=shift, layer=i, depth=2) for i in range(2))).cuda()
    compiled = torch.compile(model, fullgraph=True, mode="reduce-overhead")
    x = torch.randn(4, 128, 64, device="cuda")
    counters.clear()
    with torch.no_grad():
        for _ in range(3):
            y = compiled(x).clone()
        with torch.profiler.profile() as profile:
            compiled(x)
            torch.cuda.synchronize()
        torch.testing.assert_close(y, model(x), atol=1e-2, rtol=1e-2)
    assert counters["inductor"]["cudagraph_skips"] == 0
    launched = {event.key for event in profile.key_averages()}
    assert "cudaGraphLaunch" in launched
    assert not any("HtoD" in key for key in launched)


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize("shift", KINDS)
def test_lengths_that_change_do_not_each_compile_a_graph(shift: str) -> None:
    model = CSP(6, shift=shift, layer=1, depth=2)
    recorder = Recorder()
    compiled = torch.compile(model, fullgraph=True, backend=recorder)
    for samples in (11, 12, 30, 7, 64, 11, 200, 33):
        x = torch.randn(2, samples, 6)
        assert torch.equal(compiled(x), model(x))
    assert len(recorder.graphs) == 2  # the first length, and every length


@pytest.mark.usefixtures("fresh_compiler")
def test_an_eager_call_at_another_length_does_not_recompile() -> None:
    model = CSP(6)
    recorder = Recorder()
    compiled = torch.compile(model, fullgraph=True, backend=recorder)
    x = torch.randn(2, 11, 6)
    for samples in (5, 11, 30):
        model(torch.randn(2, samples, 6))
        assert torch.equal(compiled(x), expected(model, x))
    assert len(recorder.graphs) == 1


@pytest.mark.usefixtures("fresh_compiler")
def test_layers_compiled_one_by_one_share_a_graph() -> None:
    recorder = Recorder()
    x = torch.randn(2, 11, 6)
    for layer in range(12):
        model = CSP(6, layer=layer, depth=12)
        compiled = torch.compile(model, fullgraph=True, backend=recorder)
        assert torch.equal(compiled(x), model(x))
    assert len(recorder.graphs) == 1


@pytest.mark.usefixtures("fresh_compiler")
def test_training_a_compiled_module() -> None:
    model = nn.Sequential(CSP(6, channels=12), nn.Linear(12, 6), CSP(6, shift="exponential"))
    twin = copy.deepcopy(model)
    compiled = torch.compile(model, fullgraph=True)
    for samples in (11, 11, 8):
        x = torch.randn(2, samples, 6)
        compiled(x).square().mean().backward()
        twin(x).square().mean().backward()
    for mine, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad)


# torch.export


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("shift", KINDS)
def test_export(shift: str, strict: bool) -> None:
    model = CSP(6, channels=10, shift=shift, layer=1, depth=2)
    lengths = {0: torch.export.Dim("batch"), 1: torch.export.Dim("samples", min=4, max=4096)}
    program = torch.export.export(
        model, (torch.randn(2, 11, 6),), dynamic_shapes={"x": lengths}, strict=strict
    )
    assert list(program.state_dict) == ["weight"]
    for shape in ((2, 11, 6), (5, 33, 6)):
        x = torch.randn(shape)
        assert torch.equal(program.module()(x), model(x))
    assert torch.equal(model(x), expected(model, x))  # the module is left as it was


@pytest.mark.parametrize("strict", [True, False])
def test_export_of_one_length(strict: bool) -> None:
    model = CSP(6)
    x = torch.randn(2, 11, 6)
    program = torch.export.export(model, (x,), strict=strict)
    assert list(program.state_dict) == ["weight"]
    assert torch.equal(program.module()(x), expected(model, x))
    assert torch.equal(model(x), expected(model, x))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dim": 0}, "dim must be a positive integer, got 0"),
        ({"dim": 6, "channels": -1}, "channels must be a positive integer, got -1"),
        ({"dim": 6, "group_size": 0}, "group_size must be a positive integer, got 0"),
        ({"dim": 6, "group_size": True}, "group_size must be a positive integer, got True"),
        ({"dim": 6, "group_size": 2.5}, "group_size must be a positive integer, got 2.5"),
        ({"dim": 6, "shift": "up"}, "shift must be one of linear, exponential.*got 'up'"),
        ({"dim": 6, "order": "up"}, "order must be 'reference' or 'ascending', got 'up'"),
        ({"dim": 6, "layer": 2, "depth": 2}, r"layer must be in \[0, depth\), got layer=2"),
        ({"dim": 6, "heads": 0}, "heads must be a positive integer, got 0"),
        ({"dim": 6, "samples": 0}, "samples must be a positive integer, got 0"),
        ({"dim": 6, "samples": 9.0}, r"samples must be a positive integer, got 9\.0"),
    ],
)
def test_bad_options_are_refused_at_once(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CSP(**options)


def test_bad_input() -> None:
    model = CSP(6)
    with pytest.raises(ValueError, match=r"x must be \(..., N, 6\), got shape \(2, 11, 5\)"):
        model(torch.randn(2, 11, 5))
    with pytest.raises(ValueError, match=r"x must be \(..., N, 6\), got shape \(6,\)"):
        model(torch.randn(6))


def test_repr_says_what_it_is() -> None:
    assert repr(CSP(6, channels=12, group_size=None, shift="heads")).startswith(
        "CSP(6, channels=12, group_size=None, shift='heads', order='reference'"
    )
