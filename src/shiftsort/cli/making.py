"""A progress bar for data that is made: it shows itself when the making begins, on a terminal."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


class Making:
    """Called with how many samples are made, of how many."""

    def __init__(self, title: str) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        console = Console(stderr=True)
        self._bar = Progress(*columns, TimeRemainingColumn(), console=console, transient=True)
        self._line = self._bar.add_task(title, total=None)

    def __call__(self, done: int, total: int) -> None:
        self._bar.update(self._line, completed=done, total=total)
        if self._bar.console.is_terminal and not self._bar.live.is_started:
            self._bar.start()
        if done >= total:
            self.close()

    def close(self) -> None:
        """Leave the terminal as it was, however far it came."""
        if self._bar.live.is_started:
            self._bar.stop()


@contextmanager
def bar(title: str) -> Iterator[Making]:
    """For as long as something may be made."""
    making = Making(title)
    try:
        yield making
    finally:
        making.close()
