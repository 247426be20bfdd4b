"""Where training stands inside an epoch, and what its parts took."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

Item = TypeVar("Item")


@dataclass
class Progress:
    """Step counter and stopwatch, for whoever wants to watch; training itself never reads them."""

    doing: str = ""
    step: int = 0
    num_steps: int = 1
    seconds: dict[str, float] = field(default_factory=dict)
    _mark: float = 0.0

    def watch(self, doing: str, steps: Iterable[Item], num_steps: int) -> Iterator[Item]:
        """The steps themselves, counted as they go."""
        self.doing, self.step, self.num_steps = doing, 0, num_steps
        for item in steps:
            yield item
            self.step += 1

    def start_clock(self) -> dict[str, float]:
        """Begin an epoch: the seconds of its parts, none yet, which `lap` adds to."""
        self.seconds = {}
        self._mark = time.perf_counter()
        return self.seconds

    def lap(self, part: str) -> None:
        """Count the time since the last lap, or the start, to that part.

        An accelerator works on while Python goes ahead: its time shows up in the part that waits for it.
        """
        now = time.perf_counter()
        self.seconds[part] = self.seconds.get(part, 0.0) + now - self._mark
        self._mark = now
