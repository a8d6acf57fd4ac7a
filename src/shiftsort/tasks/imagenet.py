"""ImageNet-1k, read from its folders while a model trains: too large for one array."""

import copy
import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch

from .errors import DataError
from .store import Progress, unseen
from .task import Batch, ChooseOn, Data, Facts, Task, data_folder, shade

_HELD_OUT = 10


@dataclass(frozen=True)
class ImageNet(Task):
    """`imagenet/train` and `imagenet/val` with one folder a class. Nothing is written.

    `val` is the test set; the last 10 images of each class in train, by name, validate.
    """

    name: ClassVar[str] = "imagenet"
    about: ClassVar[str] = "1,000 classes; reads imagenet/train/*/ and imagenet/val/*/"

    size: int = 224
    classes: int = 1000
    #: Of train: "plain" crops and flips, "deit" adds RandAugment and erasing.
    augment: str = "deit"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.augment not in ("plain", "deit"):
            raise ValueError(f"augment is {self.augment!r}, expected 'plain' or 'deit'")

    def facts(self) -> Facts:
        return Facts(
            kind="pixels",
            classes=self.classes,
            length=self.size**2,
            image=(3, self.size, self.size),
            mean=(0.485, 0.456, 0.406),
            std=(0.229, 0.224, 0.225),
        )

    def folder(self, data: Path | str | None = None) -> Path:
        return data_folder(data) / self.name

    def make(
        self,
        data: Path | str | None = None,
        *,
        source: Path | str | None = None,
        workers: int | None = None,
        force: bool = False,
        progress: Progress = unseen,
    ) -> bool:
        """There is nothing to make: look whether the folders are there."""
        self.check(data if source is None else source, progress)
        return False

    def check(
        self,
        data: Path | str | None = None,
        progress: Progress = unseen,
    ) -> dict[str, Any]:
        """Count the classes and the images."""
        sizes, names = {}, {}
        for done, part in enumerate(("train", "val")):
            place = self.folder(data) / part
            names[part] = sorted(folder.name for folder in place.glob("*/"))
            if len(names[part]) != self.classes:
                raise DataError(
                    f"{place} has {len(names[part])} classes, expected {self.classes}: unpack "
                    f"ILSVRC2012 there, one folder a class, or name the folder that holds "
                    f"{self.name}/ with --data DIR"
                )
            sizes[part] = sum(1 for _ in place.glob("*/*"))
            progress(done + 1, 2)
        if names["train"] != names["val"]:
            # A label is a folder's place among the others.
            other = min({*names["train"]} ^ {*names["val"]})
            raise DataError(
                f"{self.folder(data)} has the class {other} in one of train and val only; "
                "expected the same classes in both: put the whole ILSVRC2012 there"
            )
        return {"splits": {part: [0, count] for part, count in sizes.items()}}

    def open(self, data: Path | str | None = None, *, choose_on: ChooseOn = "validation") -> Data:
        """The folders as splits; pixels are floats in [0, 1]."""
        from torchvision.datasets import ImageFolder

        manifest = self.check(data)
        root = self.folder(data)
        try:
            steady = ImageFolder(root / "train", transform(self.size, train=False))
            test = _Folder(ImageFolder(root / "val", steady.transform), None)
        except FileNotFoundError as empty:
            raise DataError(f"{root} has a class without images: {empty}") from None
        # The folders are listed once: they have 1.3 million files.
        augmented = copy.copy(steady)
        augmented.transform = transform(self.size, train=True, kind=self.augment)
        if choose_on == "validation":
            kept, held = _hold_out(augmented.targets)
            splits = {"train": _Folder(augmented, kept), "validation": _Folder(steady, held)}
        else:
            splits = {"train": _Folder(augmented, None)}
            if choose_on == "test":
                splits["validation"] = test
        names = tuple(augmented.classes)
        facts = dataclasses.replace(self.facts(), class_names=names)
        return Data(facts, choose_on, manifest, {**splits, "test": test})

    def describe(self, sample: Batch) -> str:
        return shade(
            torch.nn.functional.adaptive_avg_pool2d(sample.inputs.mean(0)[None], 48)[0] * 255
        )


class _Folder(torch.utils.data.Dataset[Batch]):
    """Images of a folder as (pixels, length, label); a DataLoader's workers read them."""

    def __init__(self, images: Any, rows: list[int] | None) -> None:
        self.images, self.rows = images, rows

    def __len__(self) -> int:
        return len(self.images) if self.rows is None else len(self.rows)

    def __getitem__(self, index: int) -> Batch:
        pixels, label = self.images[index if self.rows is None else self.rows[index]]
        length = torch.tensor(pixels.shape[-2] * pixels.shape[-1])
        return Batch(pixels, length, torch.tensor(label))


def _hold_out(targets: list[int]) -> tuple[list[int], list[int]]:
    """The rows of train that stay, and the last of each class; targets are in rising order."""
    kept, held = [], []
    for row, target in enumerate(targets):
        last = row + _HELD_OUT >= len(targets) or targets[row + _HELD_OUT] != target
        (held if last else kept).append(row)
    return kept, held


def transform(size: int = 224, *, train: bool, kind: str = "deit") -> Any:
    """From an image to float pixels in [0, 1]. Without `train`, the resized centre."""
    from torchvision.transforms import v2

    bicubic = v2.InterpolationMode.BICUBIC
    if train:
        steps = [v2.RandomResizedCrop(size, interpolation=bicubic), v2.RandomHorizontalFlip()]
        if kind == "deit":
            steps.append(v2.RandAugment(num_ops=2, magnitude=9, interpolation=bicubic))
    else:
        steps = [v2.Resize(round(size / 0.875), bicubic), v2.CenterCrop(size)]
    steps += [v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
    if train and kind == "deit":
        steps.append(v2.RandomErasing(0.25))
    return v2.Compose(steps)


def mix(classes: int) -> Any:
    """DeiT's MixUp or CutMix of a batch: called with (pixels, labels), gives soft labels."""
    from torchvision.transforms import v2

    return v2.RandomChoice(
        [v2.MixUp(alpha=0.8, num_classes=classes), v2.CutMix(alpha=1.0, num_classes=classes)]
    )
