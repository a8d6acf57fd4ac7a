"""Tasks: data that is generated or read once into plain arrays, and served by whole batches.

task = tasks.get("listops", seed=1)   # its settings
task.make()                           # once: writes the arrays
data = task.open()                    # data.facts, data.sizes, data.split("train")
"""

import dataclasses
from pathlib import Path
from typing import Any

from .errors import DataError
from .image import Image
from .imagenet import ImageNet
from .inputs import read
from .listops import ListOps
from .mqar import Mqar
from .pathfinder import Pathfinder, PathX
from .retrieval import Retrieval, RetrievalSynthetic
from .store import sets_in, sizes_of
from .task import NO_LABEL, Batch, ChooseOn, Data, Facts, Split, Task, data_folder
from .text import Text
from .vision import Cifar10, Cifar100, Digits, FashionMnist

__all__ = [
    "NO_LABEL",
    "Batch",
    "ChooseOn",
    "Data",
    "DataError",
    "Facts",
    "Split",
    "Task",
    "data_folder",
    "get",
    "kind",
    "load",
    "names",
    "read",
    "sets_in",
    "sizes_of",
]

_TASKS: dict[str, type[Task]] = {
    task.name: task
    for task in (
        *(ListOps, Text, Retrieval, RetrievalSynthetic, Image, Pathfinder, PathX, Mqar),
        *(Cifar10, Cifar100, ImageNet, FashionMnist, Digits),
    )
}


def names() -> tuple[str, ...]:
    """Every task there is."""
    return tuple(_TASKS)


def kind(name: str) -> type[Task]:
    """The class of a task."""
    if name not in _TASKS:
        raise ValueError(f"task is {name!r}, expected one of {', '.join(_TASKS)}")
    return _TASKS[name]


def get(name: str, **settings: Any) -> Task:
    """A task by name, with settings that differ from its defaults."""
    task = kind(name)
    known = [field.name for field in dataclasses.fields(task)]
    for setting in settings:
        if setting not in known:
            raise ValueError(f"{name} has no setting {setting!r}, expected one of {known}")
    return task(**settings)


def load(
    name: str,
    data: Path | str | None = None,
    *,
    choose_on: ChooseOn = "validation",
    **settings: Any,
) -> Data:
    """The samples of a task that was made before."""
    return get(name, **settings).open(data, choose_on=choose_on)
