"""One exception for Ctrl-C and SIGTERM."""

import signal
from types import FrameType
from typing import NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """A signal asked the process to stop."""

    def __init__(self, number: int):
        super().__init__(signal.Signals(number).name)
        self.number = number


class Interrupts:
    """While entered, SIGINT and SIGTERM raise Interrupted in the main thread; saves in other threads continue."""

    def __enter__(self) -> None:
        self._previous = {number: signal.signal(number, _interrupt) for number in SIGNALS}

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise Interrupted(number)
