"""Medians of interleaved repeats: A, B, A, B, ..., so that a machine that drifts does so under both."""

import contextlib
import multiprocessing
import statistics
import time
from collections.abc import Callable, Hashable, Mapping
from multiprocessing.connection import Connection
from typing import Any, TypeVar

Work = Callable[[], float]  # does the work once and returns the seconds that count
Name = TypeVar("Name", bound=Hashable)
Result = TypeVar("Result")
_REST = 0.3  # seconds


def timed(work: Callable[[], object]) -> Work:
    """The work, returning how many seconds it took."""

    def once() -> float:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    return once


def apart(make: Callable[[], Callable[[], Result]]) -> Callable[[], Result]:
    """The work that `make` makes, in a process of its own, which waits asleep between two calls.

    So that neither side has what the other told the C library, or left in its memory. Returns once it is made.
    """
    here, there = multiprocessing.Pipe()
    multiprocessing.get_context("spawn").Process(target=_serve, args=(make, there), daemon=True).start()
    there.close()  # the child's end: if it dies, here reads the end of it
    here.recv()

    def once() -> Result:
        here.send(None)
        result: Result = here.recv()
        return result

    return once


def _serve(make: Callable[[], Callable[[], Any]], asked: Connection) -> None:
    """Do the work whenever it is asked for, until nobody is there to ask."""
    work = make()
    asked.send("made")
    with contextlib.suppress(EOFError):
        while True:
            asked.recv()
            asked.send(work())


def medians(works: Mapping[Name, Work], *, repeats: int, warmups: int = 1) -> dict[Name, float]:
    """Each work's median seconds over `repeats` rounds of all of them, after rounds that do not count.

    Before each that counts there is a rest, in which the threads of the one before stop spinning.
    """

    def rested(work: Work) -> float:
        time.sleep(_REST)
        return work()

    for _ in range(warmups):
        for work in works.values():
            work()
    rounds = [[rested(work) for work in works.values()] for _ in range(repeats)]
    return {name: statistics.median(column) for name, column in zip(works, zip(*rounds, strict=True), strict=True)}


def readable(seconds: float) -> str:
    """Seconds with three digits, in the unit that suits them."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"
