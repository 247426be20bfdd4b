"""Saving while training continues: one thread that runs saves in order, one at a time."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor


class Writer:
    """Accepts saves while entered; leaving it, even by an exception, waits for the last save.

    The error of a failed save is raised by the next submit, or on leaving.
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
        """Start a save once the previous one is done; it must hold copies of everything that training changes."""
        self._wait()
        self._pending = self._executor.submit(save)

    def _wait(self) -> None:
        if self._pending is not None:
            try:
                self._pending.result()
            finally:
                if self._pending.done():  # a signal can end the waiting earlier: leaving then waits again
                    self._pending = None
