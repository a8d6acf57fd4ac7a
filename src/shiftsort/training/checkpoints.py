"""Checkpoints: a folder each, whole or not there, and recognised when it was cut off later.

checkpoints/step-00000500/
    weights.safetensors   the weights in training
    chosen.safetensors    those that were best on the validation so far, where there is one
    state.pt              optimiser, averages and counters; loaded with weights_only=True
    manifest.json         SHA-256 of each file
"""

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from .errors import RunError

FOLDER = "checkpoints"
_KEPT = 2
_WEIGHTS, _CHOSEN, _STATE, _MANIFEST = (
    "weights.safetensors",
    "chosen.safetensors",
    "state.pt",
    "manifest.json",
)


@dataclass
class Checkpoint:
    """Everything a run needs to go on."""

    step: int
    weights: dict[str, Tensor]
    chosen: dict[str, Tensor] = field(default_factory=dict)
    #: Of plain types and tensors alone.
    state: dict[str, Any] = field(default_factory=dict)


def write(run: Path, checkpoint: Checkpoint) -> Path:
    """Write one, then drop all but the newest two."""
    folder = run / FOLDER / f"step-{checkpoint.step:08}"
    partial = folder.with_name(f".{folder.name}")
    for stale in (partial, folder):
        shutil.rmtree(stale, ignore_errors=True)
    partial.mkdir(parents=True)
    save_weights(partial / _WEIGHTS, checkpoint.weights)
    if checkpoint.chosen:
        save_weights(partial / _CHOSEN, checkpoint.chosen)
    torch.save(checkpoint.state, partial / _STATE)
    hashes = {file.name: _hash(file) for file in sorted(partial.iterdir())}
    manifest = {"step": checkpoint.step, "sha256": hashes}
    (partial / _MANIFEST).write_text(json.dumps(manifest, indent=1))
    for file in partial.iterdir():
        _flush(file)
    partial.rename(folder)
    _flush(folder.parent)
    for old in _folders(run)[:-_KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    return folder


def newest(run: Path, say: Callable[[str], None]) -> Checkpoint | None:
    """The newest checkpoint that is whole, or None; what is broken is said."""
    for folder in reversed(_folders(run)):
        broken = _broken(folder)
        if broken is None:
            return _read(folder)
        say(f"{folder} is not whole ({broken}); going back to the checkpoint before it")
    return None


def save_weights(path: Path, weights: dict[str, Tensor]) -> None:
    """Write weights so that the file is either whole or as it was."""
    partial = path.with_name(f".{path.name}")
    save_file({name: tensor.contiguous() for name, tensor in weights.items()}, partial)
    _flush(partial)
    partial.replace(path)


def load_weights(path: Path) -> dict[str, Tensor]:
    """Read what `save_weights` wrote."""
    try:
        return load_file(path)
    except Exception as error:  # safetensors has an error class of its own for each fault
        raise RunError(f"{path} cannot be read as weights: {error}") from None


def require_room(run: Path, weights: int) -> None:
    """Fail now if what training will write, for weights of so many bytes, will not fit."""
    probe = run / ".probe"
    try:
        run.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"0" * 4096)
        probe.unlink()
    except OSError as error:
        raise RunError(
            f"{run} cannot be written to ({error.strerror}); choose another folder with --out"
        ) from None
    # Each has the weights, the chosen ones, two moments and perhaps an average; one is in the
    # making while two are kept. The logs are small beside them.
    needed = 5 * weights * (_KEPT + 1) + weights + (16 << 20)
    free = shutil.disk_usage(run).free
    if free < needed:
        raise RunError(
            f"{run} has {free / 1e6:,.0f} MB free, and the checkpoints need {needed / 1e6:,.0f} "
            "MB; free some, or choose another folder with --out"
        )


def _folders(run: Path) -> list[Path]:
    return sorted((run / FOLDER).glob("step-*"))


def _broken(folder: Path) -> str | None:
    try:
        hashes = json.loads((folder / _MANIFEST).read_text())["sha256"]
        for name, expected in hashes.items():
            if _hash(folder / name) != expected:
                return f"{name} is cut off or altered"
    except (OSError, ValueError, KeyError) as error:
        return str(error)
    return None


def _read(folder: Path) -> Checkpoint:
    chosen = folder / _CHOSEN
    return Checkpoint(
        step=json.loads((folder / _MANIFEST).read_text())["step"],
        weights=load_weights(folder / _WEIGHTS),
        chosen=load_weights(chosen) if chosen.exists() else {},
        state=torch.load(folder / _STATE, weights_only=True, map_location="cpu"),
    )


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
