"""Seeded work in chunks of a fixed size: the same bytes, whatever the number of workers."""

import itertools
import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from .distinct import digest
from .errors import DataError
from .store import Writer

Job = TypeVar("Job")
Done = TypeVar("Done")


def chunk_seed(seed: int, *place: int) -> np.uint64:
    """The seed of one chunk, which depends on its place alone and not on who works on it."""
    return np.random.SeedSequence(seed, spawn_key=place).generate_state(1, np.uint64)[0]


def default_workers() -> int:
    """The cores that this process may use, which in a container are fewer than the machine's."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(work: Callable[[Job], Done], jobs: Iterable[Job], workers: int) -> Iterator[Done]:
    """Results in the order of the jobs, from threads, with only a few jobs ahead in memory.

    Threads are enough because the work is compiled code, file reading or hashing, all of which
    let go of the interpreter's lock.
    """
    if workers <= 1:
        yield from map(work, jobs)
        return
    pool = ThreadPoolExecutor(workers)
    ahead: deque[Future[Done]] = deque()
    upcoming = iter(jobs)
    try:
        ahead.extend(pool.submit(work, job) for job in itertools.islice(upcoming, 2 * workers))
        while ahead:
            done = ahead.popleft().result()
            ahead.extend(pool.submit(work, job) for job in itertools.islice(upcoming, 1))
            yield done
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def fill(
    out: Writer, draw: Callable[[int], dict[str, np.ndarray]], size: int, workers: int
) -> None:
    """Add chunks of `size` rows until every row is there. No input comes twice, in any split."""

    def drawn(chunk: int) -> tuple[dict[str, np.ndarray], list[bytes]]:
        rows = draw(chunk)
        return rows, [digest(row) for row in rows["inputs"]]

    seen: set[bytes] = set()
    first = 0
    while wanted := out.missing:
        # As many chunks as would do without repetitions, and then again for what is missing.
        chunks = range(first, first + math.ceil(wanted / size))
        for rows, digests in in_order(drawn, chunks, workers):
            new = []
            for place, key in enumerate(digests):
                if key not in seen and len(new) < out.missing:
                    seen.add(key)
                    new.append(place)
            out.add(**{name: array[new] for name, array in rows.items()})
        if out.missing == wanted:
            raise DataError(
                f"only {len(seen)} different samples came with these settings, "
                f"{len(seen) + wanted} are wanted: ask for fewer, or for longer ones"
            )
        first = chunks.stop
