"""Steps as CUDA graphs: when, and that they compute what they computed before."""

from pathlib import Path

import pytest
import torch
from torch import nn

from shiftsort import mixers, recipes, tasks, training
from shiftsort.training import checkpoints, graph

_CPU, _CUDA = torch.device("cpu"), torch.device("cuda")


@pytest.mark.parametrize(
    ("device", "options", "words"),
    [
        (_CPU, {}, "need a CUDA device"),
        (_CUDA, {"devices": 2}, "2 devices"),
        (_CUDA, {"accumulate": 4}, "accumulate=4"),
        (_CUDA, {"compiled": True}, "compiled"),
    ],
)
def test_says_why_a_step_is_not_captured(device, options, words) -> None:
    assert words in graph.reason_against(nn.Linear(2, 2), device, **options)


def test_a_mixer_that_asks_the_device_is_not_captured() -> None:
    models = {
        name: nn.Sequential(mixers.build(name, dim=8, samples=16, heads=2))
        for name in ("csp", "performer")
    }
    assert graph.reason_against(models["csp"], _CUDA) is None
    assert "Performer" in graph.reason_against(models["performer"], _CUDA)


def test_wanted_where_they_cannot_be_is_told_before_a_folder_is_made(
    tiny, digits: Path, tmp_path: Path
) -> None:
    machine = training.Machine(bar=False, graphs=True)
    with pytest.raises(training.RunError, match="--graphs was given, and"):
        training.train(tiny("accumulate=2"), tmp_path / "run", data=digits, machine=machine)
    assert not (tmp_path / "run").exists()


def test_the_runs_before_a_capture_leave_no_trace_and_draw_nothing(
    tiny, digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for the capture runs the step a few times, as the real one does."""
    captured: list[tuple[torch.Tensor, ...]] = []

    def run_thrice(step: nn.Module, sample: tuple[torch.Tensor, ...], **options: object) -> None:
        for _ in range(3):
            step(*sample)
        captured.append(sample)

    recipe = tiny("choose_on=nothing")
    training.train(recipe, tmp_path / "plain", data=digits, machine=training.Machine(bar=False))
    monkeypatch.setattr(torch.cuda, "make_graphed_callables", run_thrice)
    monkeypatch.setattr(graph, "reason_against", lambda *args, **options: None)
    training.train(recipe, tmp_path / "graph", data=digits, machine=training.Machine(bar=False))
    assert len(captured) == 1
    _assert_equal(tmp_path / "plain", tmp_path / "graph")


def test_what_is_added_up_keeps_no_step(tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that a captured step gives out in floating point asks for a gradient."""
    facts = tasks.get("digits").facts()
    module = training.TrainingModule(tiny(), facts, steps=3, updates_per_epoch=10)
    forward = module.computation.forward

    def captured(*batch: torch.Tensor) -> tuple[torch.Tensor, ...]:
        loss, sums = forward(*batch)
        return loss, sums + 0 * loss

    monkeypatch.setattr(module.computation, "forward", captured)
    inputs, labels = torch.randint(256, (2, 1, 8, 8)), torch.tensor([3, 4])
    outputs = module.training_step(tasks.Batch(inputs, torch.tensor([64, 64]), labels), 0)
    assert outputs["loss"].requires_grad
    assert not outputs["sums"].requires_grad


def test_statistics_are_as_before_the_capture(monkeypatch: pytest.MonkeyPatch) -> None:
    step = nn.BatchNorm1d(3)
    before = {name: buffer.clone() for name, buffer in step.named_buffers()}
    monkeypatch.setattr(
        torch.cuda, "make_graphed_callables", lambda step, sample, **options: step(*sample)
    )
    graph.capture(step, (torch.randn(8, 3),))
    assert all(torch.equal(buffer, before[name]) for name, buffer in step.named_buffers())


@pytest.mark.gpu
@pytest.mark.parametrize("mixer", [name for name in mixers.names() if name != "performer"])
def test_a_graph_trains_as_plain_launches_do(
    mixer: str, tiny, digits: Path, tmp_path: Path
) -> None:
    recipe = tiny(f"mixer={mixer}", "choose_on=nothing", "augment=crop-flip", "clip=1")
    for name, graphs in (("plain", False), ("graph", True)):
        machine = training.Machine(bar=False, graphs=graphs)
        training.train(recipe, tmp_path / name, data=digits, machine=machine)
    _assert_equal(tmp_path / "plain", tmp_path / "graph", rtol=1e-3, atol=1e-4)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["lra/listops/csp", "lra/listops/mha", "mega/listops/csp"])
def test_a_padded_sequence_can_be_captured(name: str) -> None:
    words = ["depth=1", "batch=2", "steps=3", "task_settings.max_length=600"]
    recipe, _ = recipes.override(recipes.get(name), words)
    facts = tasks.get("listops", max_length=600).facts()
    module = training.TrainingModule(recipe, facts, steps=3, updates_per_epoch=10).cuda()
    inputs = torch.randint(1, 16, (2, 600), device="cuda")
    lengths = torch.tensor([600, 31], device="cuda")
    labels = torch.tensor([3, 4], device="cuda")
    sample = (inputs, lengths, labels, labels)
    module.computation.eval()
    expected = module.computation(*sample)[0].item()
    module.computation.train()
    graph.capture(module.computation, sample)
    loss, sums = module.computation(*sample)
    loss.backward()
    assert sums.tolist()[::2] == [pytest.approx(2 * loss.item()), 2]
    assert abs(loss.item() - expected) < 1.0
    gradients = [p.grad for p in module.model.parameters() if p.grad is not None]
    assert gradients
    assert all(gradient.isfinite().all() for gradient in gradients)


def _assert_equal(plain: Path, other: Path, **tolerance: float) -> None:
    left, right = (checkpoints.load_weights(run / "weights.safetensors") for run in (plain, other))
    assert left.keys() == right.keys()
    for name, weight in left.items():
        if tolerance:
            torch.testing.assert_close(right[name], weight, **tolerance)
        else:
            assert torch.equal(right[name], weight), name
