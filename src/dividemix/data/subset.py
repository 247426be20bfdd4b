"""Which samples of a data set to keep: fewer of every class, or a long tail of ever rarer classes.

Shapes: N samples, C classes.
"""

import numpy as np
from numpy.typing import NDArray

from dividemix.errors import InputError

Labels = NDArray[np.int64]


def limited(labels: Labels, num_classes: int, limit: int, setting: str) -> NDArray[np.int64]:
    """The indices, in order, of the first samples of each class of labels (N,), about `limit` in all.

    Classes keep their shares, and at least one sample each; of equal classes, each gives the same number. Raises
    InputError, naming the setting, if the limit is less than one sample for each class.
    """
    counts = np.bincount(labels, minlength=num_classes)
    num_present = int((counts > 0).sum())
    if limit < num_present:
        raise InputError(f"{setting} is {limit}: must be at least {num_present}, one sample for each class")
    limit -= limit % num_present
    sizes, rest = np.divmod(counts * limit, len(labels))
    largest = np.argsort(-rest, kind="stable")[: limit - int(sizes.sum())]  # what rounding down left goes to these
    sizes[largest] += 1
    return _first(labels, np.minimum(np.maximum(sizes, 1), counts))


def long_tailed(labels: Labels, num_classes: int, ratio: float) -> NDArray[np.int64]:
    """The indices, in order, of the first samples of each class such that the first class has `ratio` times the last.

    Sizes fall exponentially from class to class, as in Cui et al. (2019): class c keeps the share ratio^(-c / (C - 1))
    of the samples that the largest class has, at least one and at most its own.
    """
    counts = np.bincount(labels, minlength=num_classes)
    shares = ratio ** -(np.arange(num_classes) / (num_classes - 1))
    sizes = np.maximum((counts.max() * shares + 1e-9).astype(np.int64), 1)
    return _first(labels, np.minimum(sizes, counts))


def _first(labels: Labels, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The indices, in order, of the first sizes[c] samples of each class c."""
    members = [np.flatnonzero(labels == label)[:size] for label, size in enumerate(sizes)]
    return np.sort(np.concatenate(members))
