"""One exception for every signal that asks a program to stop: Ctrl-C, SIGTERM, and those of a cluster's time limit."""

import signal
from types import FrameType
from typing import NoReturn

from dividemix.engine.processes import is_lost_process

# Windows has no SIGUSR1 and SIGUSR2. A cluster sends them before a time limit or a preemption.
_NAMES = ("SIGINT", "SIGTERM", "SIGUSR1", "SIGUSR2")
SIGNALS = tuple(getattr(signal, name) for name in _NAMES if hasattr(signal, name))


class Interrupted(KeyboardInterrupt):
    """A signal asked the process to stop."""

    def __init__(self, number: int):
        super().__init__(signal.Signals(number).name)
        self.number = number


class Interrupts:
    """While entered, the signals raise Interrupted in the main thread; saves in other threads continue.

    Of several signals the first counts: a cluster may send another while the program saves. Ctrl-C always counts. Once
    another process of the training is lost, this one ends and says so; torchrun's signal to end adds nothing.
    """

    def __enter__(self) -> None:
        self._previous = {number: signal.signal(number, _interrupt) for number in SIGNALS}

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None and is_lost_process(error):
            _ignore()
            return
        for number, handler in self._previous.items():
            signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    _ignore()
    raise Interrupted(number)


def _ignore() -> None:
    """Ignore every further signal but Ctrl-C."""
    for number in SIGNALS:
        if number != signal.SIGINT:
            signal.signal(number, signal.SIG_IGN)
