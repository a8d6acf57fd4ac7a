"""A run that was killed ends as if it had not been."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from lightning.pytorch.utilities import rank_zero_only

from shiftsort import recipes, training
from shiftsort.training import checkpoints

_QUIET = training.Machine(bar=False)
_LONG = ("steps=400", "every=7", "ema=0.9", "accumulate=2")


def _weights(run: Path) -> dict[str, torch.Tensor]:
    return checkpoints.load_weights(run / "weights.safetensors")


def _same(left: dict[str, torch.Tensor], right: dict[str, torch.Tensor]) -> bool:
    return left.keys() == right.keys() and all(
        torch.equal(left[name], right[name]) for name in left
    )


def _train_and_stop_after(
    count: int, monkeypatch: pytest.MonkeyPatch, recipe: recipes.Recipe, run: Path, data: Path
) -> None:
    """Training dies in the middle of the update after so many checkpoints."""
    write, written = checkpoints.write, []

    def counted(run: Path, checkpoint: checkpoints.Checkpoint) -> Path:
        if len(written) == count:
            raise RuntimeError("killed")
        written.append(checkpoint.step)
        return write(run, checkpoint)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "write", counted)
        with pytest.raises(RuntimeError, match="killed"):
            training.train(recipe, run, data=data, machine=_QUIET, command="the command")


@pytest.mark.parametrize("choose_on", ["validation", "nothing"])
def test_a_killed_run_ends_with_the_same_weights(
    choose_on: str, tiny, tiny_words, digits: Path, tmp_path: Path
) -> None:
    words = (*tiny_words, *_LONG, f"choose_on={choose_on}")
    whole = tmp_path / "whole"
    training.train(tiny(*_LONG, f"choose_on={choose_on}"), whole, data=digits, machine=_QUIET)

    run = tmp_path / "killed"
    settings = [part for word in words for part in ("--set", word)]
    command = [sys.executable, "-m", "shiftsort.cli", "train", "digits/csp", *settings]
    command += ["--data", str(digits), "--out", str(run)]
    # As many threads as here: they decide the order of sums.
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    deadline = time.monotonic() + 120
    while len(list(run.glob("checkpoints/step-*"))) < 2:
        assert process.poll() is None, process.stderr.read().decode()
        assert time.monotonic() < deadline
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (run / "result.json").exists()

    training.resume(run, data=digits, machine=_QUIET, say=lambda message: None)
    assert _same(_weights(run), _weights(whole))


def test_a_checkpoint_that_was_cut_off_is_told_and_the_one_before_it_used(
    tiny, digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training.train(tiny("steps=12"), tmp_path / "whole", data=digits, machine=_QUIET)
    run = tmp_path / "run"
    _train_and_stop_after(2, monkeypatch, tiny("steps=12"), run, digits)
    newest = run / "checkpoints" / "step-00000008"
    state = newest / "state.pt"
    state.write_bytes(state.read_bytes()[: state.stat().st_size // 2])

    said: list[str] = []
    training.resume(run, data=digits, machine=_QUIET, say=said.append)
    assert "step-00000008 is not whole (state.pt is cut off or altered)" in said[0]
    assert "going on behind update 4" in said[1]
    assert _same(_weights(run), _weights(tmp_path / "whole"))


def test_rates_of_their_own_go_on_where_they_were(
    tiny, digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("mixer=s4d", "optimiser.apart={'A': 0.1, 'dt': None}", "optimiser.weight_decay=0.1")
    recipe = tiny(*words, "ema=0.5", "schedule.kind=linear")
    training.train(recipe, tmp_path / "whole", data=digits, machine=_QUIET)
    _train_and_stop_after(1, monkeypatch, recipe, tmp_path / "run", digits)
    training.resume(tmp_path / "run", data=digits, machine=_QUIET, say=lambda message: None)
    assert _same(_weights(tmp_path / "run"), _weights(tmp_path / "whole"))


def test_without_a_whole_checkpoint_a_run_starts_again(
    tiny, digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _train_and_stop_after(0, monkeypatch, tiny(), tmp_path, digits)
    said: list[str] = []
    result = training.resume(tmp_path, data=digits, machine=_QUIET, say=said.append)
    assert "starting again" in said[0]
    assert result["steps"] == 12
    assert result["command"] == "the command", "which makes the run again"


def test_metrics_of_a_resumed_run_have_each_step_once(
    tiny, digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _train_and_stop_after(1, monkeypatch, tiny(), tmp_path, digits)
    training.resume(tmp_path, data=digits, machine=_QUIET, say=lambda message: None)
    rows = (tmp_path / "metrics.csv").read_text().splitlines()[1:]
    trained = [int(row.split(",")[0]) for row in rows if row.endswith(",,,")]
    assert trained == list(range(1, 13))


def test_a_run_killed_behind_its_last_update_is_only_tested(
    tiny, digits: Path, tmp_path: Path
) -> None:
    expected = training.train(tiny(), tmp_path, data=digits, machine=_QUIET)
    weights = _weights(tmp_path)
    (tmp_path / "result.json").unlink()
    (tmp_path / "weights.safetensors").unlink()
    result = training.resume(tmp_path, data=digits, machine=_QUIET, say=lambda message: None)
    assert _same(_weights(tmp_path), weights)
    assert result["test"] == expected["test"]


def test_of_several_processes_one_goes_on_aloud_and_probes_the_disk(
    tiny, digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _train_and_stop_after(1, monkeypatch, tiny(), tmp_path, digits)
    probed: list[Path] = []
    require_room = checkpoints.require_room
    monkeypatch.setattr(
        checkpoints, "require_room", lambda run, size: probed.append(run) or require_room(run, size)
    )
    monkeypatch.setattr(rank_zero_only, "rank", 1)
    told: list[str] = []
    training.resume(tmp_path, data=digits, machine=_QUIET, say=told.append)
    assert not probed
    assert not any("going on" in message for message in told)


def test_a_checkpoint_half_written_is_not_one(tmp_path: Path) -> None:
    whole = checkpoints.Checkpoint(3, {"w": torch.ones(2)}, state={"best": None})
    checkpoints.write(tmp_path, whole)
    (tmp_path / "checkpoints" / ".step-00000005").mkdir()
    found = checkpoints.newest(tmp_path, pytest.fail)
    assert found.step == 3
    assert torch.equal(found.weights["w"], torch.ones(2))
