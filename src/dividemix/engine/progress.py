"""Where training stands inside an epoch, and what its parts took."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeVar

import torch

Item = TypeVar("Item")


@dataclass
class Progress:
    """Step counter and stopwatch, for whoever wants to watch; training itself never reads them."""

    doing: str = ""
    step: int = 0
    num_steps: int = 1
    _device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    _laps: list[tuple[str, Any]] = field(default_factory=list)

    def watch(self, doing: str, steps: Iterable[Item], num_steps: int) -> Iterator[Item]:
        """The steps themselves, counted as they go."""
        self.doing, self.step, self.num_steps = doing, 0, num_steps
        for item in steps:
            yield item
            self.step += 1

    def start_clock(self, device: torch.device) -> None:
        """Begin an epoch on the device."""
        self._device = device
        self._laps = [("", _mark(device))]

    def lap(self, part: str) -> None:
        """Count the time since the last lap, or the start, to that part."""
        self._laps.append((part, _mark(self._device)))

    def stop_clock(self) -> dict[str, float]:
        """End an epoch: the seconds of each of its parts."""
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)  # once an epoch, so that every mark is passed
        seconds: dict[str, float] = {}
        for (_, before), (part, after) in pairwise(self._laps):
            between = before.elapsed_time(after) / 1000 if self._device.type == "cuda" else after - before
            seconds[part] = seconds.get(part, 0.0) + between
        self._laps = []
        return seconds


def _mark(device: torch.device) -> Any:
    """A moment in the device's work: a GPU is still busy with earlier things, and marks it when it gets there."""
    if device.type != "cuda":
        return time.perf_counter()
    event = torch.cuda.Event(enable_timing=True)
    event.record(torch.cuda.current_stream(device))
    return event
