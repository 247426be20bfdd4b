"""Read an .npy file of vectors or images, whose labels are in a file of their own."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dividemix.data.classes import check_text, label_name
from dividemix.data.mapped import map_npy
from dividemix.data.readers.labelled import labelled
from dividemix.data.readers.table import TRUE_LABEL
from dividemix.data.source import Source
from dividemix.data.text_table import read_text_table
from dividemix.errors import InputError

_LABEL_FILES = (".npy", ".csv", ".tsv")


def read_npy(path: Path, labels: Path | None, *, option: str = "labels", label_column: str = "label") -> Source:
    """The array of an .npy file, mapped into memory, as a source.

    It has vectors (N, D), or uint8 images (N, H, W) or (N, H, W, K). The labels are a second .npy file (integers or
    text), or the column `label_column` of a .csv or .tsv file with one row for each sample, in the same order; its
    column `true_label`, if there is one, is for scoring only. `option` is what the user calls the file of labels.
    Raises InputError if a file is missing or wrong.
    """
    samples = map_npy(path)
    if labels is None:
        raise InputError(f"{path}: has no labels: name a file of them by {option}: {', '.join(_LABEL_FILES)}")
    given, truth = _read_labels(labels, label_column)
    if len(given) != len(samples):
        raise InputError(f"{labels}: has {len(given)} labels, but {path} has {len(samples)} samples: give one for each")
    if samples.ndim == 3:
        samples = samples[..., np.newaxis]
    return labelled(path.resolve().stem, samples, given, true_labels=truth, where=f"{labels}: ")


def _read_labels(path: Path, label_column: str) -> tuple[list[str], list[str] | None]:
    """The names of the samples' classes in a file of labels, and of their true classes if it has them."""
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    if path.suffix.lower() not in _LABEL_FILES:
        raise InputError(f"{path}: labels must be a {', '.join(_LABEL_FILES)} file")
    if path.suffix.lower() == ".npy":
        return _named(map_npy(path), path), None
    table = read_text_table(path, {label_column})
    columns = [table.column(label_column, "name the column of labels by label_column")]
    columns += [table.columns.index(TRUE_LABEL)] if TRUE_LABEL in table.columns else []
    found: list[list[str]] = [[] for _ in columns]
    for record in table.rows():
        for names, column in zip(found, columns, strict=True):
            name = label_name(record.value(column))
            if name is None:
                raise InputError(f"{path}: line {record.line} has no {table.columns[column]}: each sample needs one")
            names.append(name)
    return found[0], found[1] if len(found) > 1 else None


def _named(labels: NDArray[Any], path: Path) -> list[str]:
    """Labels of an array, integers or text, as names."""
    if labels.ndim != 1 or labels.dtype.kind not in "biufU":
        raise InputError(f"{path}: has {labels.dtype} of shape {labels.shape}: labels must be (N,), integers or text")
    if labels.dtype.kind == "U":
        check_text(labels, str(path))
    names = [label_name(value) for value in labels.tolist()]
    for row, name in enumerate(names):
        if name is None or (labels.dtype.kind == "f" and not float(labels[row]).is_integer()):
            raise InputError(f"{path}: label {row} is {labels[row]!r}: labels must be integers or text")
    return [name for name in names if name is not None]
