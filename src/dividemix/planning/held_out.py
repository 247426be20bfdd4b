"""Which samples are held out. Equal samples stay together: a network that knows a copy says nothing of new samples."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dividemix.data.equal_samples import equal_groups
from dividemix.data.source import Source

_MIN_TO_HOLD_OUT = 5  # a class with fewer samples is not held out from


class HeldOut(NamedTuple):
    """Which samples are held out."""

    samples: NDArray[np.int64]  # their indices
    has_copies: bool = False  # whether any samples of the data are equal; not looked for if none is to be held out


def held_out(source: Source, labels: NDArray[np.int64], share: float, *, seed: int) -> HeldOut:
    """The samples to hold out: at most the share of each class, none of classes with few samples.

    Groups of equal samples are drawn as a whole. One that is larger than what may still be held out of a class is not.
    """
    if not share:
        return HeldOut(np.zeros(0, dtype=np.int64))
    groups = equal_groups((source if source.encoding is None else source.encoding.source).train_samples)
    in_order = np.argsort(groups, kind="stable")
    ends = np.cumsum(np.bincount(groups))
    sizes = np.bincount(labels)
    room = np.where(sizes >= _MIN_TO_HOLD_OUT, [round(share * size) for size in sizes.tolist()], 0)
    is_drawn = np.zeros(len(ends), dtype=np.bool_)
    rng = np.random.default_rng([seed, 2])  # another stream than the noise of the same seed
    for label in np.flatnonzero(sizes >= _MIN_TO_HOLD_OUT).tolist():
        for group in groups[rng.permutation(np.flatnonzero(labels == label))].tolist():
            if not room[label]:
                break
            if is_drawn[group]:
                continue
            members = in_order[ends[group - 1] if group else 0 : ends[group]]
            taken = np.bincount(labels[members], minlength=len(room))
            if (taken <= room).all():
                room -= taken
                is_drawn[group] = True
    return HeldOut(np.flatnonzero(is_drawn[groups]), len(ends) < len(groups))
