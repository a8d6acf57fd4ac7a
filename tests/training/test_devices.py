"""Two processes train as one does: the same batches, the same weights."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from shiftsort import training
from shiftsort.training import checkpoints

#: Dropout is drawn on each device for itself, so it is out; the rest must agree.
_WORDS = ("dropout=0", "steps=6", "every=3", "clip=0.5", "ema=0.5", "batch=48")


#: Lightning starts the second process itself, or finds both started by torchrun.
_STARTED = {
    "lightning": ["-m", "shiftsort.cli"],
    "torchrun": ["-m", "torch.distributed.run", "--nproc-per-node=2", "-m", "shiftsort.cli"],
}


def _train_on_two(
    strategy: str, started: str, run: Path, data: Path, words: tuple[str, ...]
) -> None:
    settings = [part for word in words for part in ("--set", word)]
    command = [sys.executable, *_STARTED[started], "train", "digits/csp", *settings]
    command += ["--data", str(data), "--out", str(run), "--devices", "2", "--strategy", strategy]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(done.stdout.strip().splitlines()) == 2, "one process speaks"


@pytest.mark.parametrize(("strategy", "started"), [("ddp", "torchrun"), ("fsdp", "lightning")])
def test_two_devices_train_as_one_does(
    strategy: str, started: str, tiny, tiny_words, digits: Path, tmp_path: Path
) -> None:
    quiet = training.Machine(bar=False)
    expected = training.train(tiny(*_WORDS), tmp_path / "one", data=digits, machine=quiet)
    _train_on_two(strategy, started, tmp_path / "two", digits, (*tiny_words, *_WORDS))

    result = json.loads((tmp_path / "two" / "result.json").read_text())
    assert result["test"]["loss"] == pytest.approx(expected["test"]["loss"], rel=1e-4)
    assert result["parameters"] == expected["parameters"]
    for name in ("weights.safetensors", "checkpoints/step-00000006/weights.safetensors"):
        one, two = (checkpoints.load_weights(tmp_path / part / name) for part in ("one", "two"))
        assert one.keys() == two.keys()
        for key, weight in one.items():
            torch.testing.assert_close(two[key], weight, rtol=1e-4, atol=1e-6)

    states = [
        torch.load(tmp_path / part / "checkpoints/step-00000003/state.pt", weights_only=True)
        for part in ("one", "two")
    ]
    for key, averaged in states[0]["average"].items():
        torch.testing.assert_close(states[1]["average"][key], averaged, rtol=1e-4, atol=1e-6)
