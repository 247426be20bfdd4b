"""From the epochs of runs to a table's figures: the paper's best and last, times, mean and deviation over seeds."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dividemix.judging.records import EpochRow
from dividemix.judging.scoring import best_of, mean_of_last
from dividemix.judging.selection import best_epoch

Rows = Sequence[EpochRow]


@dataclass(frozen=True)
class Measure:
    """What to read from a run: `key` of each epoch's row (dots lead inside), reduced by the _REDUCTIONS entry `how`."""

    how: str
    key: str
    phase: str | None = None  # only the epochs of this phase; None: all

    def of(self, rows: Rows) -> float | None:
        """The run's figure; None if its rows do not have it."""
        if self.phase is not None:
            rows = [row for row in rows if row["phase"] == self.phase]
        if self.how == "last":  # a stage that began again is not averaged with the one before it
            rows = [row for row in rows if row["phase"] == rows[-1]["phase"]]
        if self.how == "selected":
            if not any("val_acc" in row for row in rows):
                return None
            kept = best_epoch(rows)
            rows = [row for row in rows if row["epoch"] == kept]
        values = [value for row in rows if (value := _pick(row, self.key)) is not None]
        return _REDUCTIONS[self.how](values) if values else None


_REDUCTIONS: dict[str, Callable[[Sequence[float]], float | None]] = {
    "best": best_of,
    "last": mean_of_last,
    "selected": statistics.fmean,  # of one epoch: the one that the run keeps, by its validation images
    "hours": lambda seconds: sum(seconds) / 3600,
    "mean": statistics.fmean,
}


def _pick(row: Mapping[str, Any], key: str) -> Any:
    """The row's value at `key`: profile.co_divide, test_acc_by_net.0; None if there is none."""
    value: Any = row
    for part in key.split("."):
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, Sequence) and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


@dataclass(frozen=True)
class Figure:
    """A mean over seeds and its sample standard deviation; a single seed has none."""

    mean: float
    std: float | None
    num_seeds: int


def over_seeds(values: Sequence[float]) -> Figure | None:
    """The values of several seeds as one figure; None if there are none."""
    if not values:
        return None
    return Figure(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None, len(values))
