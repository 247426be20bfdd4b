"""Apply a function to many items in threads, a few batches ahead of the consumer."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_AHEAD = 2  # batches in progress while one is in use
_MAX_THREADS = 16


def num_threads() -> int:
    """How many threads work, unless they mostly wait."""
    return min(os.cpu_count() or 1, _MAX_THREADS)


def map_ahead(
    function: Callable[[Item], Result], batches: Iterable[Sequence[Item]], *, waits: bool = False
) -> Iterator[list[Result]]:
    """For each batch the results of its items, in the order of the items; more threads if the function mostly waits."""
    pool = ThreadPoolExecutor(_MAX_THREADS if waits else num_threads())
    waiting: deque[list[Future[Result]]] = deque()
    try:
        for batch in batches:
            waiting.append([pool.submit(function, item) for item in batch])
            if len(waiting) > _AHEAD:
                yield [future.result() for future in waiting.popleft()]
        while waiting:
            yield [future.result() for future in waiting.popleft()]
    finally:
        pool.shutdown(cancel_futures=True)


def map_each(
    function: Callable[[Item], Result], items: Sequence[Item], *, size: int = 128, waits: bool = False
) -> Iterator[Result]:
    """The result of each item, in order; at most three times `size` results are kept. `waits` is as in `map_ahead`."""
    batches = (items[start : start + size] for start in range(0, len(items), size))
    for results in map_ahead(function, batches, waits=waits):
        yield from results
