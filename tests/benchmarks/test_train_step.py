"""`shiftsort bench lra` and `bench model`: what is trained, what is counted, who fails."""

import json
import time

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from typer.testing import CliRunner

from shiftsort import mixers
from shiftsort.benchmarks import clock, memory, record, train_step, trainees
from shiftsort.benchmarks.measure import Effort
from shiftsort.benchmarks.trainees import Trainee
from shiftsort.cli.app import app

BRIEF = Effort(rounds=2, budget=0.0, least=2, most=2)


@pytest.fixture(autouse=True)
def _one_thread():
    """Small models on a busy machine: threads would wait for each other, not for the work."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def run(*arguments):
    return CliRunner().invoke(app, ["bench", *arguments])


def measure(*some, device="cpu", **options):
    return train_step.measure(some, device, torch.float32, BRIEF, **options)


def trainee(name, build=lambda: nn.Linear(3, 2), inputs=lambda model, b: torch.randn(b, 3)):
    return Trainee(name, 4, 1, build, inputs)


def test_every_mixer_trains_at_every_length():
    some = trainees.encoders([16, 32], batch=2)
    assert {t.name for t in some} == {*mixers.names(), "csp, complete sort"}
    assert {t.samples for t in some} == {16, 32}
    for entry in some:
        step = train_step.TrainStep(entry, "cpu", torch.float32)
        before = [p.detach().clone() for p in step.model.parameters()]
        assert torch.isfinite(step()), entry.name
        after = step.model.parameters()
        assert any(not torch.equal(a, b) for a, b in zip(before, after, strict=True)), entry.name


def test_the_complete_sort_is_one():
    by_name = {t.name: t for t in trainees.encoders([16], batch=1)}
    sizes = {
        name: by_name[name].build().layers[0].mixer.csp.group_size
        for name in ("csp", "csp, complete sort")
    }
    assert sizes == {"csp": 2, "csp, complete sort": None}


def test_every_vit_and_mega_has_inputs_that_it_reads():
    some = trainees.vits_and_megas(batch=2)
    assert {t.name.split()[0] for t in some} == {"ViT", "MEGA"}
    for entry in some:
        with FakeTensorMode():
            model = entry.build()
            assert model(entry.inputs(model, 2)).shape[0] == 2, entry.name
        inputs = entry.inputs(model, 2)
        if not inputs.is_floating_point():
            assert inputs.shape[-1] == entry.samples
            assert inputs.min() >= 1


def test_below_float32_a_step_runs_under_autocast():
    seen = []

    class Looking(nn.Linear):
        def forward(self, x):
            y = super().forward(x)
            seen.append((self.weight.dtype, y.dtype))
            return y

    step = train_step.TrainStep(trainee("a", lambda: Looking(3, 2)), "cpu", torch.bfloat16)
    step()
    assert seen == [(torch.float32, torch.bfloat16)]


def test_what_cannot_be_a_graph_says_why():
    (row,) = measure(trainee("on a CPU"), graphs=True)
    assert "CUDA graphs need a CUDA device" in row["failed"]


@pytest.mark.gpu
def test_a_graph_is_the_same_step():
    losses = []
    for graphs in (False, True):
        step = train_step.TrainStep(trainee("a"), "cuda", torch.float32, graphs)
        losses.append([step().item() for _ in range(5)])
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_who_fails_says_why_and_stops_nobody():
    def refuse():
        raise ValueError("not on a Sunday\nsecond line")

    def too_large(model, batch):
        raise torch.OutOfMemoryError("17 lines")

    def nothing(model, batch):
        return torch.full((batch, 3), torch.nan)

    rows = measure(
        trainee("refuses", refuse), trainee("too large", inputs=too_large),
        trainee("diverges", inputs=nothing), trainee("sound"),
    )  # fmt: skip
    assert {row["candidate"]: row["failed"] for row in rows} == {
        "refuses": "ValueError: not on a Sunday",
        "too large": "out of memory",
        "diverges": "ValueError: its loss is nan",
        "sound": None,
    }
    sound = rows[-1]
    assert sound["parameters"] == 8
    assert sound["ms"]["step"]["repeats"] == 4
    assert sound["steps_per_s"] == pytest.approx(1e3 / sound["ms"]["step"]["median"])
    assert sound["samples_per_s"] == pytest.approx(4 * sound["steps_per_s"])
    assert "sound" in record.label(sound)


def test_the_peak_holds_weights_gradients_and_what_adam_keeps():
    width = 2048
    (row,) = measure(
        trainee("wide", lambda: nn.Linear(width, width), lambda model, b: torch.randn(b, width))
    )
    peak = row["peak_bytes"]["step"]
    if peak is None:
        pytest.skip("this system does not tell a process's peak")
    # Weights, gradients, two averages; the product's own packed copy may come on top.
    assert 3.5 * 4 * width**2 < peak < 5.5 * 4 * width**2


def test_steps_are_timed_from_one_to_the_next():
    times = clock.sample_steps(lambda: time.sleep(0.005), "cpu", budget=0.0, least=3, most=9)
    assert len(times) == 3
    assert all(t >= 5 for t in times)


def test_lra_writes_a_table_a_file_and_a_picture(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "keep_freed_memory", lambda: True)  # it lasts, for other tests too
    path, picture = tmp_path / "new" / "lra.json", tmp_path / "lra.png"
    result = run(
        "lra", "--lengths", "16,32", "--batch", "2", "--only", "mha", "--only", "csp",
        "--device", "cpu", "--quick", "--json", str(path), "--plot", str(picture),
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "training, B = 2, N = 32" in result.output
    found = json.loads(path.read_text())
    assert found["bench"] == "lra"
    settings = {"device": "cpu", "dtype": "float32", "graphs": False, "quick": True}
    assert found["settings"] == settings
    measured = {(row["candidate"], *row["shape"]): row for row in found["results"]}
    assert set(measured) == {
        (name, 2, n) for name in ("mha", "csp", "csp, complete sort") for n in (16, 32)
    }
    assert all(row["failed"] is None and row["steps_per_s"] > 0 for row in measured.values())
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_model_tells_of_a_vit(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "keep_freed_memory", lambda: True)
    picture = tmp_path / "model.png"
    result = run(
        "model", "--only", "CIFAR-10, csp", "--batch", "2", "--device", "cpu", "--quick",
        "--plot", str(picture),
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "ViT CIFAR-10, csp, twice as wide" in result.output
    assert "6,377,994" in result.output
    assert picture.exists()


def test_where_nothing_could_be_measured_the_reason_stands_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "keep_freed_memory", lambda: True)
    monkeypatch.setattr(trainees, "encoders", lambda lengths, batch: [trainee("a", lambda: 1 / 0)])
    picture = tmp_path / "lra.png"
    result = run("lra", "--device", "cpu", "--quick", "--plot", str(picture))
    assert result.exit_code == 0, result.output
    assert "not measured (1 x): a: ZeroDivisionError: division by zero" in result.output
    assert "steps / s" not in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lra", "--lengths", "1k"], "--lengths must be positive integers with commas, got '1k'"),
        (["lra", "--dtype", "int8"], "--dtype must be one of float32, bfloat16"),
        (["lra", "--only", "nobody"], "--only nobody names none of these candidates: mha; csp"),
        (["model", "--device", "tpu"], "--device must be cpu, or cuda where torch sees a GPU"),
        (["model", "--batch", "0"], "'--batch'"),
    ],
)
def test_bad_options_of_training_are_named(arguments, message):
    result = run(*arguments, *(() if "--device" in arguments else ("--device", "cpu")))
    assert result.exit_code == 2
    assert message in " ".join(result.output.replace("│", " ").split())
