"""Labels that are measurements, such as prices. They are no classes, and no method here does regression."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dividemix.data.source import Source
from dividemix.data.table_rows import is_rows
from dividemix.errors import InputError

_FEW = 20  # different values: so many can be classes, whatever they are
_SHOWN = 5
_MIN_PER_FRACTION, _MIN_PER_INTEGER = 10, 1.5  # samples of each different value that classes have at least


def refuse_regression(source: Source, where: str) -> None:
    """Raise InputError, starting with `where`, if the labels are measurements.

    They are if there are more than 20 different numbers with fewer than 10 samples each, or 1.5 if all are integers.
    Labels that a program gave as text, and classes that were named, are never refused.
    """
    num_samples = len(source.train_labels)
    names = [source.classes[label] for label in np.unique(source.train_labels)]
    if source.has_names or not _are_measurements(names, num_samples):
        return
    problem = f"{len(names):,} different numbers as labels of {num_samples:,} {source.kind}, such as {names[-1]}"
    remedy = "labels must be classes, each with several samples"
    if is_rows(source.train_samples):
        others = _few_valued(source.train_samples)
        remedy = f"as target, name a column of classes, such as {', '.join(others)}" if others else remedy
    raise InputError(
        f"{where}: has {problem}: regression is not supported; {remedy}; if they are classes, give them names, such as"
        f" 'class {names[-1]}'"
    )


def _are_measurements(names: Sequence[str], num_samples: int) -> bool:
    if len(names) <= _FEW:
        return False
    try:
        numbers = [float(name) for name in names]
    except ValueError:
        return False
    has_fractions = any(math.isfinite(number) and not number.is_integer() for number in numbers)
    return num_samples < (_MIN_PER_FRACTION if has_fractions else _MIN_PER_INTEGER) * len(names)


def _few_valued(rows: Any) -> list[str]:
    """The first columns of rows (N,) with so few different values that these can be classes."""
    found = []
    for name in rows.dtype.names:
        values = {value for value in rows[name].tolist() if value is not None and value == value}
        if 2 <= len(values) <= min(_FEW, len(rows) // 2):
            found.append(name)
    return found[:_SHOWN]
