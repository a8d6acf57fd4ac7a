"""How fast data is generated, read from the disk into batches, and augmented."""

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from shiftsort import tasks
from shiftsort.tasks.chunks import default_workers
from shiftsort.tasks.vision import crop_and_flip

from .record import Row

_BATCH = 256
#: Images of each Pathfinder size that take a second or a few.
_PATHFINDERS = {32: 10_000, 64: 500, 128: 500, 256: 2_000}


def measure(
    device: str, seconds: float, quick: bool, say: Callable[[str], None] = lambda what: None
) -> Iterator[Row]:
    """One row for each speed; what takes no time by itself is repeated for `seconds`."""
    workers = default_workers()
    with tempfile.TemporaryDirectory() as scratch:
        for count in sorted({1, workers}):
            say(f"generating with {count} workers")
            folder, sets = Path(scratch) / str(count), _sets(count, quick)
            yield from _generating(sets, folder, count)
        say("batches")
        yield from _batches(sets, folder, device, seconds)
    say("augmentation")
    yield _augmentation(device, seconds)


def _sets(workers: int, quick: bool) -> list[tasks.Task]:
    if quick:
        return [tasks.get("listops", train=1_000), tasks.get("pathfinder", samples=1_000)]
    return [
        tasks.get("listops"),
        tasks.get("mqar"),
        tasks.get("retrieval-synthetic", train=20_000),
        *(
            tasks.get("pathfinder", size=size, samples=count * workers)
            for size, count in _PATHFINDERS.items()
        ),
    ]


def _generating(sets: list[tasks.Task], folder: Path, workers: int) -> Iterator[Row]:
    for task in sets:
        # The compiler's time is paid once for all sets, and is not the generator's.
        _few(task).make(folder / "few", workers=1)
        start = time.perf_counter()
        task.make(folder, workers=workers)
        seconds = time.perf_counter() - start
        samples = sum(task.open(folder).sizes.values())
        yield _row(f"generate {_name(task)}", samples, seconds, workers=workers)


def _few(task: tasks.Task) -> tasks.Task:
    few = {"samples": 1} if hasattr(task, "samples") else {"train": 1, "validation": 1, "test": 1}
    return tasks.get(task.name, **{**task.settings(), **few})


def _name(task: tasks.Task) -> str:
    told = [str(getattr(task, key)) for key in ("size", "difficulty") if hasattr(task, key)]
    return " ".join([task.name, *told])


def _batches(sets: list[tasks.Task], folder: Path, device: str, seconds: float) -> Iterator[Row]:
    """Shuffled batches from the files on the disk, and from a split that was moved whole."""
    for task in sets:
        split = task.open(folder).split("train")
        places = {"the disk": split}
        if device != "cpu":
            places[device] = split.to(device)
        for where, samples in places.items():
            generator = torch.Generator(samples.inputs.device).manual_seed(0)

            def batch(
                samples: tasks.Split = samples, generator: torch.Generator = generator
            ) -> int:
                order = torch.randint(
                    len(samples), (_BATCH,), generator=generator, device=generator.device
                )
                inputs, _, _ = samples.batch(order)
                return len(inputs.to(device))

            name = f"batches of {_BATCH} from {where} to {device}: {_name(task)}"
            yield _repeated(name, batch, seconds, device)


def _augmentation(device: str, seconds: float) -> Row:
    images = torch.randint(256, (512, 3, 32, 32), dtype=torch.uint8, device=device)
    generator = torch.Generator(device).manual_seed(0)
    return _repeated(
        "crop and flip 3 x 32 x 32", lambda: len(crop_and_flip(images, generator)), seconds, device
    )


def _repeated(name: str, work: Callable[[], int], seconds: float, device: str) -> Row:
    def wait() -> None:
        if device != "cpu":
            torch.cuda.synchronize(device)

    work()
    wait()
    samples, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        samples += work()
    wait()
    return _row(name, samples, time.perf_counter() - start)


def _row(name: str, samples: int, seconds: float, workers: int | None = None) -> Row:
    rate = samples / seconds
    return {
        "candidate": name,
        "failed": None,
        "ms": {},
        "workers": workers,
        "samples": samples,
        "seconds": seconds,
        "samples_per_s": rate,
        "samples_per_s_and_worker": rate / workers if workers else None,
    }
