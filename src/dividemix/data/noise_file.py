"""Files of noise: save and load noisy labels as JSON, read transition matrices from text or .npy.

A noise file contains the labels themselves, so they are the same on other machines and with other versions of numpy.

Shapes: N samples, C classes.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dividemix import atomic
from dividemix.errors import InputError, advised
from dividemix.stored import MAX_BYTES, parse_json, read_bytes

Labels = NDArray[np.int64]
FORMAT_VERSION = 1


@dataclass(frozen=True, eq=False)
class NoisyLabels:
    """The labels that training gets, and how they were made."""

    labels: Labels  # (N,): the given labels
    kind: str
    nominal_rate: float  # The requested rate
    true_rate: float  # The share of labels that differ from the true ones
    seed: int
    transition: NDArray[np.float64]  # (C, C): empirical P(given j | true i); a class without samples has a row of zeros


def compare(
    labels: Labels, true_labels: Labels, num_classes: int, kind: str, nominal_rate: float, seed: int
) -> NoisyLabels:
    """The labels (N,) with their true rate and transitions, from a comparison with the true labels (N,)."""
    pairs = np.bincount(true_labels * num_classes + labels, minlength=num_classes**2)
    counts = pairs.reshape(num_classes, num_classes)
    transition = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return NoisyLabels(labels, kind, nominal_rate, float(np.mean(labels != true_labels)), seed, transition)


def save_noise(path: Path, noisy: NoisyLabels, true_labels: NDArray[np.integer[Any]]) -> None:
    """Write the noise to a file, whole or not at all; equal noise gives equal bytes.

    The file contains only a fingerprint of the true labels (N,); `load_noise` recognises the data by it. Raises
    InputError if the file cannot be written.
    """
    assert noisy.labels.shape == true_labels.shape
    content = {
        "format_version": FORMAT_VERSION,
        "kind": noisy.kind,
        "nominal_rate": noisy.nominal_rate,
        "seed": noisy.seed,
        "num_classes": len(noisy.transition),
        "true_labels_sha256": _fingerprint(true_labels),
        "labels": noisy.labels.tolist(),
    }
    lines = (f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in content.items())
    try:
        atomic.write_text(path, "{\n" + ",\n".join(lines) + "\n}\n")
    except OSError as error:
        raise InputError(f"noise file {path} cannot be written: {error.strerror}") from error


def load_noise(path: Path, true_labels: Labels, *, num_classes: int) -> NoisyLabels:
    """Load what `save_noise` wrote for these true labels (N,); InputError if it is damaged, or for other data."""
    where = f"noise file {path}"
    try:
        content = parse_json(read_bytes(path, MAX_BYTES), dict[str, Any], where)
    except InputError as error:
        raise advised(error, "make it again") from error.__cause__
    version = content.get("format_version")
    if version != FORMAT_VERSION:
        raise InputError(f"{where}: format_version is {version!r}: must be {FORMAT_VERSION}; make the file again")
    for name, is_valid in _FIELDS.items():
        if name not in content or not is_valid(content[name]):
            raise InputError(f"{where} is damaged: {name} is missing or has a wrong value; make it again")

    labels = content["labels"]
    if content["num_classes"] != num_classes:
        raise InputError(f"{where} is for {content['num_classes']} classes, the data has {num_classes}")
    if len(labels) != len(true_labels):
        raise InputError(f"{where} is for {len(labels)} samples, the data has {len(true_labels)}")
    if content["true_labels_sha256"] != _fingerprint(true_labels):
        raise InputError(f"{where} is for other data: its true labels, or their order, differ; make it for this data")
    if not 0 <= min(labels) <= max(labels) < num_classes:
        raise InputError(f"{where} is damaged: labels must be from 0 to {num_classes - 1}; make it again")
    kind, nominal_rate, seed = content["kind"], float(content["nominal_rate"]), content["seed"]
    return compare(np.array(labels, dtype=np.int64), true_labels, num_classes, kind, nominal_rate, seed)


def read_matrix(path: Path, num_classes: int) -> NDArray[np.float64]:
    """The transition matrix (C, C), T[i, j] = P(given j | true i), from a .csv, .txt or .npy file.

    Raises InputError if the file cannot be read, or is not C x C numbers in [0, 1] whose rows sum to 1.
    """
    where = f"noise matrix {path}"
    if path.suffix.lower() not in _MATRIX_READERS:
        raise InputError(f"{where}: must be a {', '.join(_MATRIX_READERS)} file")
    try:
        matrix = _MATRIX_READERS[path.suffix.lower()](path, where)
    except OSError as error:
        raise InputError(f"{where} cannot be read: {error.strerror}") from error
    if matrix.shape != (num_classes, num_classes):
        raise InputError(f"{where} has shape {matrix.shape}: must be ({num_classes}, {num_classes}), a row per class")
    for row, values in enumerate(matrix, start=1):
        outside = values[~((values >= 0) & (values <= 1))]  # NaN is outside too
        if outside.size:
            raise InputError(f"{where}: row {row} has {outside[0]:g}; must be numbers from 0 to 1")
        if abs(values.sum() - 1) > 1e-6:
            raise InputError(f"{where}: row {row} sums to {values.sum():.9g}; every row must sum to 1")
    return matrix


def _matrix_from_text(path: Path, where: str) -> NDArray[np.float64]:
    """Rows of numbers separated by commas or white space; blank lines are skipped."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"{where} is not text: must be numbers separated by commas") from error
    rows: list[list[float]] = []
    for words in filter(None, (line.replace(",", " ").split() for line in lines)):
        try:
            rows.append([float(word) for word in words])
        except ValueError as error:
            raise InputError(f"{where}: row {len(rows) + 1}: {error}; must be numbers") from error
        if len(rows[-1]) != len(rows[0]):
            raise InputError(f"{where}: row {len(rows)} has {len(rows[-1])} numbers, the first row {len(rows[0])}")
    return np.array(rows, dtype=np.float64)


def _matrix_from_npy(path: Path, where: str) -> NDArray[np.float64]:
    """The array of a .npy file; a pickle in it is never run."""
    with path.open("rb") as file:
        try:
            matrix = np.lib.format.read_array(file, allow_pickle=False)
        except OSError:
            raise
        except Exception as error:  # a damaged header causes many kinds of errors
            raise InputError(f"{where} is damaged, or not a .npy array of numbers") from error
    if matrix.dtype.kind not in "iuf":
        raise InputError(f"{where} has type {matrix.dtype}: must be real numbers")
    return matrix.astype(np.float64)


def _fingerprint(true_labels: NDArray[np.integer[Any]]) -> str:
    """SHA-256 of the labels as little-endian int64, the same on every machine."""
    return hashlib.sha256(true_labels.astype("<i8").tobytes()).hexdigest()


# `type(x) is int` and not isinstance, which would accept JSON's true and false.
_FIELDS: dict[str, Callable[[Any], bool]] = {
    "kind": lambda value: type(value) is str,
    "nominal_rate": lambda value: type(value) in (int, float) and 0 <= value <= 1,
    "seed": lambda value: type(value) is int and value >= 0,
    "num_classes": lambda value: type(value) is int,
    "true_labels_sha256": lambda value: type(value) is str,
    "labels": lambda value: type(value) is list and set(map(type, value)) == {int},
}

_MATRIX_READERS = {".csv": _matrix_from_text, ".txt": _matrix_from_text, ".npy": _matrix_from_npy}
