"""Noise and files: noisy labels saved and loaded as JSON, transition matrices read from text or .npy.

A noise file keeps the labels themselves, so they are the same on other machines and under other versions of numpy.

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
from dividemix.errors import InputError

Labels = NDArray[np.int64]
FORMAT_VERSION = 1


@dataclass(frozen=True, eq=False)
class NoisyLabels:
    """Labels as they are given to training, and how they came about."""

    labels: Labels
    """(N,): the given labels."""
    kind: str
    """The kind of noise that made them."""
    nominal_rate: float
    """The rate asked for."""
    true_rate: float
    """Share of the labels that differ from the true ones."""
    seed: int
    """The seed they were drawn with."""
    transition: NDArray[np.float64]
    """(C, C): empirical P(given j | true i); a class without samples has a row of zeros."""


def compare(
    labels: Labels, true_labels: Labels, *, num_classes: int, kind: str, nominal_rate: float, seed: int
) -> NoisyLabels:
    """The labels (N,) with their true rate and transitions, counted against the true labels (N,)."""
    pairs = np.bincount(true_labels * num_classes + labels, minlength=num_classes**2)
    counts = pairs.reshape(num_classes, num_classes)
    transition = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return NoisyLabels(labels, kind, nominal_rate, float(np.mean(labels != true_labels)), seed, transition)


def save_noise(path: Path, noisy: NoisyLabels, true_labels: NDArray[np.integer[Any]]) -> None:
    """Write the noise to a file, whole or not at all; equal noise gives equal bytes.

    Of the true labels (N,) the file holds only a fingerprint, by which `load_noise` knows the data again.

    Raises:
        InputError: where the file cannot be written.
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
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    try:
        atomic.write_text(path, text)
    except OSError as error:
        raise InputError(f"noise file {path} cannot be written: {error.strerror}") from error


def load_noise(path: Path, true_labels: Labels, *, num_classes: int) -> NoisyLabels:
    """What `save_noise` wrote for these true labels (N,), with its own kind, rate and seed.

    Raises:
        InputError: where the file cannot be read, is damaged, of another version, or belongs to other data.
    """
    content = _read_object(path)
    version = content.get("format_version")
    if version != FORMAT_VERSION:
        raise InputError(
            f"noise file {path}: format_version is {version!r}, {FORMAT_VERSION} is needed; make the file again"
        )
    for name, is_valid in _FIELDS.items():
        if name not in content or not is_valid(content[name]):
            raise InputError(f"noise file {path} is damaged: {name} is missing or has a wrong value; make it again")

    labels = content["labels"]
    if content["num_classes"] != num_classes:
        raise InputError(f"noise file {path} is for {content['num_classes']} classes, the data has {num_classes}")
    if len(labels) != len(true_labels):
        raise InputError(f"noise file {path} is for {len(labels)} samples, the data has {len(true_labels)}")
    if content["true_labels_sha256"] != _fingerprint(true_labels):
        raise InputError(
            f"noise file {path} is for other data: its true labels, or their order, differ; make it for this data"
        )
    if not 0 <= min(labels) <= max(labels) < num_classes:
        raise InputError(f"noise file {path} is damaged: labels must be from 0 to {num_classes - 1}; make it again")
    return compare(
        np.array(labels, dtype=np.int64),
        true_labels,
        num_classes=num_classes,
        kind=content["kind"],
        nominal_rate=float(content["nominal_rate"]),
        seed=content["seed"],
    )


def read_matrix(path: Path, num_classes: int) -> NDArray[np.float64]:
    """The transition matrix (C, C), T[i, j] = P(given j | true i), from a .csv, .txt or .npy file.

    Raises:
        InputError: where the file cannot be read, or is not C x C numbers in [0, 1] whose rows sum to 1.
    """
    if path.suffix.lower() not in _MATRIX_READERS:
        raise InputError(f"noise matrix {path}: a file named {', '.join(_MATRIX_READERS)} is needed")
    try:
        matrix = _MATRIX_READERS[path.suffix.lower()](path)
    except OSError as error:
        raise InputError(f"noise matrix {path} cannot be read: {error.strerror}") from error
    if matrix.shape != (num_classes, num_classes):
        raise InputError(
            f"noise matrix {path} has shape {matrix.shape}: ({num_classes}, {num_classes}) is needed, a row per class"
        )
    for row, values in enumerate(matrix, start=1):
        outside = values[~((values >= 0) & (values <= 1))]  # NaN too is not inside
        if outside.size:
            raise InputError(f"noise matrix {path}: row {row} has {outside[0]:g}; numbers from 0 to 1 are needed")
        if abs(values.sum() - 1) > 1e-6:
            raise InputError(f"noise matrix {path}: row {row} sums to {values.sum():.9g}; every row must sum to 1")
    return matrix


def _matrix_from_text(path: Path) -> NDArray[np.float64]:
    """Rows of numbers separated by commas or white space; blank lines do not count."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"noise matrix {path} is not text: numbers separated by commas are needed") from error
    rows: list[list[float]] = []
    for words in filter(None, (line.replace(",", " ").split() for line in lines)):
        try:
            rows.append([float(word) for word in words])
        except ValueError as error:
            raise InputError(f"noise matrix {path}: row {len(rows) + 1}: {error}; numbers are needed") from error
        if len(rows[-1]) != len(rows[0]):
            raise InputError(
                f"noise matrix {path}: row {len(rows)} has {len(rows[-1])} numbers, the first row {len(rows[0])}"
            )
    return np.array(rows, dtype=np.float64)


def _matrix_from_npy(path: Path) -> NDArray[np.float64]:
    """The array of a .npy file; a pickle in it is refused, not run."""
    with path.open("rb") as file:
        try:
            matrix = np.lib.format.read_array(file, allow_pickle=False)
        except OSError:
            raise
        except Exception as error:  # a damaged header fails in many ways: syntax, tokens, types, sizes
            raise InputError(f"noise matrix {path} is damaged, or no .npy array of numbers") from error
    if matrix.dtype.kind not in "iuf":
        raise InputError(f"noise matrix {path} holds {matrix.dtype}: real numbers are needed")
    return matrix.astype(np.float64)


def _read_object(path: Path) -> dict[str, Any]:
    """The JSON object that the file holds."""
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"noise file {path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"noise file {path} is damaged: it is not whole JSON; make it again") from error
    if not isinstance(content, dict):
        raise InputError(f"noise file {path} is not a noise file: a JSON object is needed")
    return content


def _fingerprint(true_labels: NDArray[np.integer[Any]]) -> str:
    """SHA-256 of the labels as little-endian int64, the same on every machine."""
    return hashlib.sha256(true_labels.astype("<i8").tobytes()).hexdigest()


# `type(x) is int` and not isinstance: JSON's true and false are no numbers here.
_FIELDS: dict[str, Callable[[Any], bool]] = {
    "kind": lambda value: type(value) is str,
    "nominal_rate": lambda value: type(value) in (int, float) and 0 <= value <= 1,
    "seed": lambda value: type(value) is int and value >= 0,
    "num_classes": lambda value: type(value) is int,
    "true_labels_sha256": lambda value: type(value) is str,
    "labels": lambda value: type(value) is list and set(map(type, value)) == {int},
}

_MATRIX_READERS = {".csv": _matrix_from_text, ".txt": _matrix_from_text, ".npy": _matrix_from_npy}
