"""Labels of a Python program as names of classes: one for each sample, or the votes of several annotators."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dividemix.data.classes import LabelType, are_text, label_type
from dividemix.data.readers.parquet import class_name
from dividemix.data.readers.pixels import without_torch
from dividemix.data.votes import Votes, consensus
from dividemix.errors import InputError, shown


def class_list(classes: Any, known: Sequence[str] | None) -> list[str] | None:
    """The names of the classes: those given, else those that the data has, else None. Raises InputError for others."""
    if classes is not None and (isinstance(classes, str) or not _are_texts(_items(classes))):
        raise InputError(f"classes is {shown(classes)}: must be a list of names (text)")
    names = list(known or () if classes is None else classes) or None
    if names and len(set(names)) < len(names):
        raise InputError(f"two of the {len(names)} classes have the same name: use different names")
    return names


def votes_of(
    labels: Any, annotators: Any, classes: Sequence[str] | None, num_images: int
) -> tuple[list[str | None], Votes] | None:
    """The consensus of votes (N, A) and the votes; None if the labels are one for each image."""
    rows = _items(without_torch(labels.values if hasattr(labels, "columns") else labels, "labels"))
    if not rows or not all(isinstance(row, list | tuple | np.ndarray) for row in rows):
        if annotators is not None:
            raise InputError("annotators are given, so labels must have shape (N, A): a column for each annotator")
        return None
    table = [_items(row) or [] for row in rows]
    num_annotators = max(map(len, table))
    if num_annotators < 2:
        return None  # these are no votes, and no labels
    if annotators is None and all(row.count(1) == 1 and row.count(0) == len(row) - 1 for row in table):
        raise InputError(
            "labels are one-hot, with one 1 in each row: give one class for each sample, as labels.argmax(axis=1); if"
            " they are votes, name the annotators"
        )
    names = _items(getattr(labels, "columns", None) if annotators is None else annotators)
    names = [f"annotator {number + 1}" for number in range(num_annotators)] if names is None else list(map(str, names))
    if any(len(row) != num_annotators for row in table) or len(set(names)) != num_annotators:
        raise InputError(
            f"labels have {num_annotators} columns, annotators are {shown(names)}: give one name for each column"
        )
    votes = []
    for number, row in enumerate(table):
        for place, value in enumerate(row):
            if _is_no_label(value):
                raise InputError(f"labels[{number}][{place}] is {value}: must be text or an integer")
        votes.append({who: vote for who, value in zip(names, row, strict=True) if (vote := class_name(value, classes))})
        if not votes[-1]:
            raise InputError(f"labels[{number}] has no vote: give at least one for each image, or leave the image out")
    if len(votes) != num_images:
        raise InputError(f"labels are {len(votes)}, but there are {num_images} images: give one row for each image")
    return consensus(votes, names)


def type_of(labels: Any, classes: Sequence[str] | None) -> LabelType:
    """The type of labels (N,), or of votes (N, A). It is text if `classes` has the names of numbered labels."""
    return "text" if classes else label_type(_each_label(labels))


def have_names(labels: Any, classes: Sequence[str] | None) -> bool:
    """Whether the classes are named, or all labels (N,), or votes (N, A), are text."""
    return bool(classes) or are_text(_each_label(labels))


def _each_label(labels: Any) -> Iterator[Any]:
    """The labels (N,), or all votes (N, A)."""
    rows = _items(without_torch(labels.values if hasattr(labels, "columns") else labels, "labels")) or []
    votes = [_items(row) if isinstance(row, list | tuple | np.ndarray) else [row] for row in rows]
    return (label for row in votes for label in row or ())


def _items(values: Any) -> list[Any] | None:
    """The items of a list or an array; None if it has none. Those of a set have no order, those of a dict are keys."""
    if isinstance(values, Mapping | set | frozenset):
        return None
    try:
        return list(values.tolist() if isinstance(values, np.ndarray) else values)
    except (TypeError, NotImplementedError):
        return None


def _is_no_label(value: Any) -> bool:
    """Whether it cannot name a class: a number such as 0.5, which NaN is not, a container, an object without a text."""
    if isinstance(value, float | np.floating):
        return not np.isnan(value) and not float(value).is_integer()
    if isinstance(value, list | tuple | dict | set | np.ndarray | complex):
        return True
    return not isinstance(value, int | str) and str(value) == object.__repr__(value)


def _are_texts(items: list[Any] | None) -> bool:
    return items is not None and all(isinstance(item, str) for item in items)


def names_of(labels: Any, classes: Sequence[str] | None, where: str, num_images: int) -> list[str]:
    """The class of each sample by name; InputError, naming `where`, unless there is one label for each."""
    if labels is None:
        raise InputError(f"{where} are missing: give one for each sample")
    labels = without_torch(labels, where)
    if hasattr(labels, "columns"):
        raise InputError(f"{where} is a table: give one of its columns")
    if isinstance(labels, np.ndarray) and labels.ndim > 1:
        raise InputError(f"{where} has shape {labels.shape}: must be ({num_images},), one label for each sample")
    values = None if isinstance(labels, str | bytes) else _items(labels)
    if values is None:
        raise InputError(f"{where} is {shown(labels)}: must be a list or an array, one label for each sample")
    if len(values) != num_images:
        raise InputError(f"{where} are {len(values)}, but there are {num_images} samples: give one for each")
    names = []
    for number, value in enumerate(values):
        name = None if _is_no_label(value) else class_name(value, classes)
        if name is None:
            allowed = "text or an integer" if classes is None else f"a class's name or number, 0 to {len(classes) - 1}"
            if isinstance(value, float | np.floating) and math.isfinite(value):
                allowed += "; regression is not supported"
            raise InputError(f"{where}[{number}] is {shown(value, 50)}: must be {allowed}")
        names.append(name)
    return names
