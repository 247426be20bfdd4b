"""What the networks have learned, by the given labels alone. A flag means something only where they have.

Shapes: N samples, n of them held out, C classes.
"""

import numpy as np
from numpy.typing import NDArray

from dividemix.judging.before_labels import Predictions

_OFTEN = 10  # labels of a class from which it could have been learned
_BLOCK = 1_000_000  # numbers in a block of predictions
_ALMOST_NEVER = 0.1  # a class that is predicted less often than this share of its given labels was not learned

_BLOCK = 10_000  # samples whose predictions are in memory at once

Labels = NDArray[np.int64]


def learned_classes(labels: Labels, predicted: Labels, num_classes: int) -> NDArray[np.bool_]:
    """Which classes (C,) are not given often and almost never predicted."""
    given, found = (np.bincount(one, minlength=num_classes) for one in (labels, predicted))
    return np.asarray((given < _OFTEN) | (found >= _ALMOST_NEVER * given))


def is_guess(probs: Predictions | None, labels: Labels, unseen: Labels | None) -> bool:
    """Whether predictions (N, C) agree with held-out labels no more often than the most frequent of these does.

    `unseen` (n,) are the indices of the held-out samples. Without any, nothing is known, and it is False.
    """
    if probs is None or unseen is None or not len(unseen):
        return False
    size, num_predicted = max(1, _BLOCK // probs.shape[1]), 0
    for first in range(0, len(unseen), size):  # a copy of many predictions is large
        rows = unseen[first : first + size]
        num_predicted += int((probs[rows].argmax(axis=1) == labels[rows]).sum())
    return bool(num_predicted <= np.bincount(labels[unseen]).max())
