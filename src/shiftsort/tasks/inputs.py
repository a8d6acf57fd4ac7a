"""Somebody's own file as samples of a task: an image, a text, or an array as .npy."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from .errors import DataError
from .image import to_gray
from .imagenet import ImageNet, transform
from .task import Facts, Task


def read(task: Task, path: Path) -> tuple[Tensor, Tensor]:
    """Inputs and lengths, as those of a batch."""
    if not path.is_file():
        raise DataError(f"{path} is not a file; expected an image, a text, or an array as .npy")
    facts = task.facts()
    try:
        if path.suffix == ".npy":
            return _array(np.load(path, allow_pickle=False), facts)
        if facts.image is not None:
            return _image(task, path, facts)
        samples = task.parse(path.read_bytes())
        if not samples:
            raise ValueError("there is no sample in it")
        return _padded(samples, facts)
    except (EOFError, OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read as {task.name}: {error}") from None


def _array(array: np.ndarray, facts: Facts) -> tuple[Tensor, Tensor]:
    """One sample, or several along the first axis."""
    if not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"the array is of {array.dtype}, expected integers")
    top = 255 if facts.vocabulary is None else facts.vocabulary - 1
    if array.size and not 0 <= array.min() <= array.max() <= top:
        raise ValueError(f"values go from {array.min()} to {array.max()}, expected 0 to {top}")
    if facts.image is not None and array.shape[-3:] == facts.image:
        images = array.reshape(-1, *facts.image)
        flat = images if facts.kind == "pixels" else images.reshape(len(images), -1)
        return torch.from_numpy(flat.astype(np.uint8)), torch.full((len(images),), facts.length)
    if facts.kind == "pixels":
        raise ValueError(f"the array is of shape {array.shape}, expected images of {facts.image}")
    inner = (facts.towers,) if facts.towers > 1 else ()
    rows = array.reshape(-1, *inner, array.shape[-1]) if array.ndim else array
    most, given = facts.length, rows.shape[-1] if rows.ndim else 0
    if given > most or given < (1 if facts.padding is not None else most):
        wanted = f"{most} tokens" if facts.padding is None else f"1 to {most} tokens"
        raise ValueError(f"the array is of shape {array.shape}, expected {wanted} in the last axis")
    tokens = torch.zeros(*rows.shape[:-1], most, dtype=torch.int32)
    tokens[..., :given] = torch.from_numpy(rows.astype(np.int32))
    return tokens, torch.full(rows.shape[:-1], given)


def _image(task: Task, path: Path, facts: Facts) -> tuple[Tensor, Tensor]:
    from PIL import Image

    with Image.open(path) as file:
        picture = file.convert("RGB")
    if isinstance(task, ImageNet):
        return transform(task.size, train=False)(picture)[None], torch.tensor([facts.length])
    channels, height, width = facts.image
    picture = picture.resize((width, height), Image.Resampling.BICUBIC)
    pixels_bchw = np.asarray(picture).transpose(2, 0, 1)[None]
    return _array(pixels_bchw if channels == 3 else to_gray(pixels_bchw)[:, None], facts)


def _padded(samples: Sequence[Sequence[bytes]], facts: Facts) -> tuple[Tensor, Tensor]:
    tokens = np.zeros((len(samples), facts.towers, facts.length), np.uint8)
    lengths = np.zeros((len(samples), facts.towers), np.int64)
    for row, sequences in enumerate(samples):
        for tower, sequence in enumerate(sequences):
            if len(sequence) > facts.length:
                raise ValueError(
                    f"sample {row + 1} has {len(sequence)} tokens, expected {facts.length} at most"
                )
            tokens[row, tower, : len(sequence)] = np.frombuffer(sequence, np.uint8)
            lengths[row, tower] = len(sequence)
    shape = (len(samples), facts.towers) if facts.towers > 1 else (len(samples),)
    return torch.from_numpy(tokens.reshape(*shape, -1)), torch.from_numpy(lengths.reshape(shape))
