"""Saving beside the training: one thread that writes what it is given, in order, one save at a time."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor


class Writer:
    """While entered, takes saves; leaving it, for whatever reason, waits for the last one.

    A save that failed raises its error at the next submit, or on leaving.
    """

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="writer")
        self._pending: Future[None] | None = None

    def __enter__(self) -> "Writer":
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            self._wait()
        finally:
            self._executor.shutdown()

    def submit(self, save: Callable[[], None]) -> None:
        """Start a save once the one before it is done; it must hold copies of whatever training goes on to change."""
        self._wait()
        self._pending = self._executor.submit(save)

    def _wait(self) -> None:
        if self._pending is not None:
            try:
                self._pending.result()
            finally:
                if self._pending.done():  # not so where a signal ends the waiting: leaving waits again
                    self._pending = None
