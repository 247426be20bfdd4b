"""How far annotators agree: Krippendorff's alpha for classes without an order.

Shapes: N samples, A annotators. A vote is a class number, or -1 if there is none.
"""

import numpy as np
from numpy.typing import NDArray


def krippendorff_alpha(votes: NDArray[np.int64], num_classes: int) -> float | None:
    """1 if all annotators always agree, 0 if they agree as if by chance, less if they contradict; None if unknown.

    It is unknown if no sample has two votes, or all votes are for one class. Annotators may have voted on different
    samples. It is one minus the observed disagreement over that expected if votes were shuffled.
    """
    if not num_classes:  # no vote at all
        return None
    counts = np.stack([(votes == label).sum(axis=1) for label in range(num_classes)], axis=1).astype(np.float64)
    counts = counts[counts.sum(axis=1) >= 2]  # (n, C): only these can be compared
    sizes, totals = counts.sum(axis=1), counts.sum(axis=0)
    pairable = totals.sum()
    expected = pairable**2 - (totals**2).sum()
    if not expected:
        return None
    observed = ((sizes**2 - (counts**2).sum(axis=1)) / (sizes - 1)).sum()
    return float(1 - (pairable - 1) * observed / expected)
