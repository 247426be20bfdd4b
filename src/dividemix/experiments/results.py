"""From the epochs of runs to a table's figures: the paper's best and last, times, mean and deviation over seeds."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dividemix.judging.scoring import best_of, mean_of_last
from dividemix.judging.selection import best_epoch

Rows = Sequence[Mapping[str, Any]]  # of metrics.jsonl, one an epoch


@dataclass(frozen=True)
class Measure:
    """What to read off a run: `key` in each epoch's row (dots lead inside), and a key of REDUCTIONS."""

    how: str
    key: str

    def of(self, rows: Rows) -> float | None:
        """The run's figure; None where its rows do not have it."""
        return REDUCTIONS[self.how](rows, self.key)


@dataclass(frozen=True)
class Figure:
    """A mean over seeds with its sample standard deviation, which a single seed does not have."""

    mean: float
    std: float | None
    num_seeds: int


def over_seeds(values: Sequence[float]) -> Figure | None:
    """The values of several seeds as one figure; None without any."""
    if not values:
        return None
    return Figure(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None, len(values))


def _pick(row: Mapping[str, Any], key: str) -> Any:
    """The row's value at `key`: profile.co_divide, test_acc_by_net.0; None where there is none."""
    value: Any = row
    for part in key.split("."):
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, Sequence) and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def _present(rows: Rows, key: str) -> list[float]:
    return [value for row in rows if (value := _pick(row, key)) is not None]


def _best(rows: Rows, key: str) -> float | None:
    return best_of(_present(rows, key))


def _last(rows: Rows, key: str) -> float | None:
    return mean_of_last(_present(rows, key))


def _selected(rows: Rows, key: str) -> float | None:
    """The value of the epoch that a run keeps by its validation images."""
    if not any("val_acc" in row for row in rows):
        return None
    kept = best_epoch(rows)
    value: float | None = _pick(next(row for row in rows if row["epoch"] == kept), key)
    return value


def _hours(rows: Rows, key: str) -> float | None:
    return sum(_present(rows, key)) / 3600 if rows else None


def _mean_mix(rows: Rows, key: str) -> float | None:
    """The mean over the epochs after warm-up."""
    values = _present([row for row in rows if row["phase"] == "mix"], key)
    return statistics.fmean(values) if values else None


REDUCTIONS: dict[str, Callable[[Rows, str], float | None]] = {
    "best": _best,
    "last": _last,
    "selected": _selected,
    "hours": _hours,
    "mean_mix": _mean_mix,
}
