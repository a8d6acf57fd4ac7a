"""A run from its recipe to its result."""

import csv
import json
import shutil
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from shiftsort import recipes, training
from shiftsort.training import callbacks, checkpoints, folder

_QUIET = training.Machine(bar=False)


def test_a_run_leaves_everything_in_its_folder(tiny, digits: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    recipe = tiny()
    result = training.train(
        recipe, run, data=digits, machine=_QUIET, overrides={"steps": 12}, command="the command"
    )
    assert json.loads((run / "result.json").read_text()) == json.loads(json.dumps(result))
    assert folder.read_recipe(run) == (recipe, {"steps": 12})
    assert result["format"] == 1
    assert (result["table"], result["row"], result["task"]) == ("digits", "csp", "digits")
    assert (result["steps"], result["steps_published"]) == (12, 800)
    assert result["epochs"] == pytest.approx(12 / 20)
    assert result["chosen_on"] == "validation"
    assert result["command"] == "the command"
    assert 0 < result["test"]["top1"] <= result["test"]["top5"] <= 100
    assert result["steps_per_second"] > 0
    assert (run / "environment.json").exists()
    assert list((run / "tensorboard").glob("events*"))

    with (run / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    looks = [row for row in rows if row["validation_top1"]]
    assert [int(row["step"]) for row in looks] == [4, 8, 12]
    assert max(float(row["validation_top1"]) for row in looks) == pytest.approx(
        result["validation"]["top1"]
    )
    assert {row["train_loss"] != "" for row in rows if not row["validation_top1"]} == {True}

    scores = training.evaluate(run, data=digits, machine=_QUIET)
    assert vars(scores) == result["test"], "the weights on the disk are those that were tested"


def test_the_best_weights_on_the_validation_are_tested(tiny, digits: Path, tmp_path: Path) -> None:
    result = training.train(tiny("lr=0.05"), tmp_path, data=digits, machine=_QUIET)
    scores = training.evaluate(tmp_path, data=digits, split="validation", machine=_QUIET)
    assert scores.top1 == result["validation"]["top1"]


def test_with_nothing_to_choose_the_last_weights_are_tested(
    tiny, digits: Path, tmp_path: Path
) -> None:
    recipe = tiny("choose_on=nothing", "steps=10")
    result = training.train(recipe, tmp_path, data=digits, machine=_QUIET)
    assert result["validation"] is None
    last = checkpoints.newest(tmp_path, pytest.fail)
    assert last.step == 10
    chosen = checkpoints.load_weights(tmp_path / "weights.safetensors")
    assert all(torch.equal(chosen[name], last.weights[name]) for name in last.weights)


def test_an_average_of_the_weights_is_what_is_tested(tiny, digits: Path, tmp_path: Path) -> None:
    recipe = tiny("choose_on=nothing", "ema=0.5", "steps=3", "every=1")
    training.train(recipe, tmp_path, data=digits, machine=_QUIET)
    weights = {
        step: checkpoints.load_weights(
            tmp_path / "checkpoints" / f"step-{step:08}" / "weights.safetensors"
        )["head.weight"]
        for step in (2, 3)
    }
    state = torch.load(tmp_path / "checkpoints" / "step-00000002" / "state.pt", weights_only=True)
    expected = torch.lerp(state["average"]["head.weight"], weights[3], 0.5)
    chosen = checkpoints.load_weights(tmp_path / "weights.safetensors")["head.weight"]
    torch.testing.assert_close(chosen, expected)
    assert not torch.equal(chosen, weights[3])


def test_a_set_smaller_than_the_published_batch_ends_with_a_result(tiny, tmp_path: Path) -> None:
    recipe = tiny("batch=8", "task_settings={'validation': 1700, 'test': 50}", "steps=2")
    result = training.train(recipe, tmp_path / "run", data=tmp_path / "data", machine=_QUIET)
    assert (result["steps"], result["steps_published"]) == (2, 1)


def test_a_batch_taken_in_parts_gives_the_same_training(tiny, digits: Path, tmp_path: Path) -> None:
    for parts in (1, 4):
        recipe = tiny(f"accumulate={parts}", "dropout=0", "steps=4", "choose_on=nothing", "clip=1")
        training.train(recipe, tmp_path / str(parts), data=digits, machine=_QUIET)
    whole, in_parts = (
        checkpoints.load_weights(tmp_path / name / "weights.safetensors") for name in ("1", "4")
    )
    for name, expected in whole.items():
        torch.testing.assert_close(in_parts[name], expected, rtol=1e-3, atol=1e-5)
    whole, in_parts = (_course(tmp_path / name) for name in ("1", "4"))
    assert len(whole) == 4
    for expected, row in zip(whole, in_parts, strict=True):
        assert row == pytest.approx(expected, rel=1e-3), "and is told to be the same"


def _course(run: Path) -> list[tuple[float, float]]:
    with (run / "metrics.csv").open() as file:
        return [(float(r["train_loss"]), float(r["train_top1"])) for r in csv.DictReader(file)]


@pytest.mark.parametrize("choose_on", ["validation", "nothing"])
def test_the_speed_leaves_checkpoints_out(
    choose_on: str, tiny, digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, real, hour = checkpoints.write, time.monotonic, 3600.0
    slept: list[float] = []
    monkeypatch.setattr(checkpoints, "write", lambda *args: slept.append(hour) or write(*args))
    clock = SimpleNamespace(monotonic=lambda: real() + sum(slept))
    monkeypatch.setattr(callbacks, "time", clock)
    result = training.train(tiny(f"choose_on={choose_on}"), tmp_path, data=digits, machine=_QUIET)
    assert len(slept) == 3
    assert 12 / result["steps_per_second"] < hour


def test_gradients_are_no_longer_than_the_clip(tiny, digits: Path, tmp_path: Path) -> None:
    recipe = tiny("steps=1", "clip=0.01", "choose_on=nothing")
    training.train(recipe, tmp_path, data=digits, machine=_QUIET)
    state = torch.load(tmp_path / "checkpoints/step-00000001/state.pt", weights_only=True)
    means = [each["exp_avg"] for each in state["optimiser"]["state"].values()]
    norm = torch.cat([mean.flatten() for mean in means]).norm()
    assert norm == pytest.approx((1 - recipe.optimiser.beta1) * 0.01, rel=1e-3)


def test_a_run_is_not_written_over(tiny, digits: Path, tmp_path: Path) -> None:
    folder.create(tmp_path, tiny(), {}, "")
    with pytest.raises(training.RunError, match="has a run already"):
        training.train(tiny(), tmp_path, data=digits, machine=_QUIET)


def test_a_full_disk_is_said_before_training(
    tiny, digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(training.RunError, match="MB free, and the checkpoints need"):
        training.train(tiny(), tmp_path, data=digits, machine=_QUIET)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_is_said_before_training(
    tiny, digits: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(training.RunError, match=r"cannot be written to \(Not a directory\)"):
        training.train(tiny(), tmp_path / "file" / "run", data=digits, machine=_QUIET)


def test_where_no_bar_is_seen_lines_tell_the_course(tiny, digits: Path, tmp_path: Path) -> None:
    for name, choose_on in (("chosen", "validation"), ("last", "nothing")):
        said: list[str] = []
        recipe = tiny(f"choose_on={choose_on}")
        training.train(recipe, tmp_path / name, data=digits, machine=_QUIET, say=said.append)
        assert f"12 steps of {recipe.batch} samples, float32 on" in said[0]
        assert [line.split("  ")[0] for line in said[1:]] == [
            f"digits/csp: step {step} of 12" for step in (4, 8, 12)
        ]
        assert all("samples/s" in line for line in said[1:])
        assert ("validation" in said[1]) == (choose_on == "validation")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["mixer_options.bogus=1"], "takes no option 'bogus'"),
        (["batch=5000"], "1297 training samples"),
        (["batch=9", "accumulate=2"], "do not divide"),
        (["task=listops"], "vit reads pixels"),
        (["task_settings.bogus=1"], "no setting 'bogus'"),
    ],
)
def test_a_recipe_that_cannot_be_leaves_no_folder(
    words: list[str], message: str, tiny, digits: Path, tmp_path: Path
) -> None:
    with pytest.raises(recipes.RecipeError, match=message):
        training.train(tiny(*words), tmp_path / "run", data=digits, machine=_QUIET)
    assert not (tmp_path / "run").exists()


def test_a_long_run_is_soon_seen_to_learn(
    tiny, digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shiftsort.training.callbacks._SILENCE", 0)
    said: list[str] = []
    recipe = tiny("steps=12", "every=12")
    training.train(recipe, tmp_path, data=digits, machine=_QUIET, say=said.append)
    first, *_, last = [line for line in said if ": step " in line]
    assert "step 1 of 12  loss " in first
    assert first.endswith(" left")
    assert "step 12 of 12  loss " in last
    assert not last.endswith(" left")
    with (tmp_path / "metrics.csv").open() as file:
        steps = [int(row["step"]) for row in csv.DictReader(file)]
    assert steps == [1, 2, 4, 6, 8, 10, 12, 12], "each power of two, and every second step"


def test_the_bar_shows_steps_and_news_in_80_columns() -> None:
    from rich.console import Console
    from rich.progress import MofNCompleteColumn

    from shiftsort.training.callbacks import _Bar

    news = "loss 0.073  accuracy 96.9 %  5,048 samples/s  validation 97.6 %"
    bar = _Bar(MofNCompleteColumn(), console=Console(width=80))
    bar.add_task("digits/csp", total=800, completed=40, news=news)
    with bar.console.capture() as drawn:
        bar.console.print(bar.get_renderable())
    assert "40/800" in drawn.get()
    assert news in drawn.get()
