"""`shiftsort data`: make, check and look at the tasks' data."""

import colorsys
import dataclasses
import typing
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from shiftsort import tasks

from . import errors, making
from .options import DataOption, DebugOption

app = typer.Typer(
    name="data", help="Make, check and look at the tasks' data.", no_args_is_help=True
)

SettingsOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A setting of the task; may be repeated."),
]
NameArgument = Annotated[str, typer.Argument(help="The task; see `shiftsort data list`.")]


@app.command("list")
def list_tasks(data: DataOption = None, debug: DebugOption = False) -> None:
    """List the tasks, and the sets that are there."""
    console = Console()
    table = Table("task", "what", "settings")
    for name in tasks.names():
        kind = tasks.kind(name)
        settings = (f"{field.name}={field.default}" for field in dataclasses.fields(kind))
        table.add_row(name, escape(kind.about), escape(" ".join(settings)))
    console.print(table)

    with errors.one_line("data", debug=debug):
        folder = tasks.data_folder(data)
        sets = Table("set", "splits", "size", title=f"in {folder}", title_justify="left")
        for made in tasks.sets_in(folder):
            try:
                counts = (f"{split} {count}" for split, count in tasks.sizes_of(made).items())
                splits = "  ".join(counts)
            except tasks.DataError:
                splits = "broken manifest"
            size = sum(file.stat().st_size for file in made.iterdir())
            sets.add_row(escape(made.name), splits, f"{size / 1e6:,.1f} MB")
        console.print(sets)


@app.command()
def make(
    name: NameArgument,
    data: DataOption = None,
    source: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Where the publishers' folders are (default: the data folder)."
        ),
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Threads (default: all cores).")] = None,
    force: Annotated[bool, typer.Option("--force", help="Make it again if it is there.")] = False,
    settings: SettingsOption = None,
    debug: DebugOption = False,
) -> None:
    """Generate or read a task's data and write its arrays."""
    task = _task(name, settings, debug)
    with errors.one_line("data", debug=debug):
        with making.bar(f"make {name}") as progress:
            new = task.make(data, source=source, workers=workers, force=force, progress=progress)
        print(f"{'made' if new else 'there already:'} {task.folder(data)}")


@app.command()
def check(
    name: NameArgument,
    data: DataOption = None,
    settings: SettingsOption = None,
    debug: DebugOption = False,
) -> None:
    """Read every byte of a set and compare it with its manifest."""
    task = _task(name, settings, debug)
    with errors.one_line("data", debug=debug):
        with making.bar(f"check {name}") as progress:
            manifest = task.check(data, progress=progress)
        counts = ", ".join(
            f"{key} {stop - start}" for key, (start, stop) in manifest["splits"].items()
        )
        print(f"{task.folder(data)} is whole: {counts}")


@app.command()
def show(
    name: NameArgument,
    data: DataOption = None,
    split: Annotated[str, typer.Option(help="train, validation or test.")] = "train",
    count: Annotated[int, typer.Option(min=1, help="How many samples.")] = 8,
    first: Annotated[int, typer.Option(min=0, help="The first of them.")] = 0,
    png: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write images to this file instead.")
    ] = None,
    settings: SettingsOption = None,
    debug: DebugOption = False,
) -> None:
    """Print samples with their labels, or write them as one PNG."""
    task = _task(name, settings, debug)
    with errors.one_line("data", debug=debug):
        opened = task.open(data)
        samples = opened.split(split)
        if first >= len(samples):
            raise ValueError(f"--first is {first}, {split} of {name} has {len(samples)} samples")
        chosen = [samples[index] for index in range(first, min(first + count, len(samples)))]
        names = opened.facts.class_names
        if png is not None:
            _write_png(png, opened.facts, chosen)
        for index, sample in enumerate(chosen, first):
            if opened.facts.labels_per_position:
                label = "at each query"
            else:
                label = names[sample.labels] if names else str(sample.labels.item())
            print(f"{split} {index}: label {label}, length {sample.lengths.tolist()}")
            if png is None:
                print(_printable(task.describe(sample)))


def _printable(text: str) -> str:
    """Without what a terminal would take for commands, which a text from anywhere may hold."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in text)


def _write_png(path: Path, facts: tasks.Facts, samples: list[tasks.Batch]) -> None:
    if facts.image is None:
        raise ValueError("--png was given for a task without images; leave it out to print samples")
    from PIL import Image

    pixels = torch.stack([sample.inputs.reshape(facts.image) for sample in samples])
    if pixels.is_floating_point():
        pixels = pixels * 255
    labels = np.array([int(sample.labels) for sample in samples])
    columns = int(np.ceil(np.sqrt(len(pixels))))
    frames = _colors(labels / facts.classes)
    Image.fromarray(_montage(pixels.to(torch.uint8).numpy(), frames, columns)).save(path)
    print(f"wrote {path}: {columns} in a row, framed by label, in this order")


def _montage(images_bchw: np.ndarray, frames_bc: np.ndarray, columns: int) -> np.ndarray:
    """Images side by side in colored frames, small ones enlarged: (height, width, 3)."""
    b, _, h, w = images_bchw.shape
    scale = max(1, 96 // h)
    height, width = h * scale + 4, w * scale + 4
    tiles = np.zeros((-(-b // columns) * columns, 3, height, width), np.uint8)
    tiles[:b] = frames_bc[:, :, None, None]
    tiles[:b, :, 2:-2, 2:-2] = images_bchw.repeat(scale, axis=2).repeat(scale, axis=3)
    rows = tiles.reshape(-1, columns, 3, height, width).transpose(0, 3, 1, 4, 2)
    return rows.reshape(-1, columns * width, 3)


def _colors(hues: np.ndarray) -> np.ndarray:
    return np.array([[255 * part for part in colorsys.hsv_to_rgb(hue, 0.8, 0.8)] for hue in hues])


def _task(name: str, settings: list[str] | None, debug: bool) -> tasks.Task:
    with errors.one_line("data", debug=debug, code=errors.WRONG):
        return tasks.get(name, **_parse(name, settings))


def _parse(name: str, words: list[str] | None) -> dict[str, Any]:
    """Settings from NAME=VALUE, as the types that the task declares."""
    kind = tasks.kind(name)
    types = typing.get_type_hints(kind)
    settings: dict[str, Any] = {}
    for word in words or ():
        key, equals, value = word.partition("=")
        known = [field.name for field in dataclasses.fields(kind)]
        if not equals or key not in known:
            raise ValueError(f"--set {word} was given, expected NAME=VALUE with NAME in {known}")
        try:
            settings[key] = _convert(types[key], value)
        except ValueError:
            raise ValueError(f"--set {word} was given, expected {types[key].__name__}") from None
    return settings


def _convert(kind: type, value: str) -> Any:
    if kind is bool:
        if value.lower() not in ("true", "false"):
            raise ValueError(value)
        return value.lower() == "true"
    return kind(value)
