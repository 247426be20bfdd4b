"""How well the scores and the flags find wrong labels, if the true ones are known.

Shapes: N samples.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dividemix.judging.scoring import clean_auc

_MAX_POINTS = 200  # of the curve: more than a chart has pixels to show


def flag_quality(
    label_score: NDArray[np.float64], is_issue: NDArray[np.bool_], is_wrong: NDArray[np.bool_]
) -> dict[str, Any] | None:
    """AUC and average precision of label_score (N,), precision and recall of is_issue (N,), and the curve between.

    The curve is a list of (recall, precision), one point for each distinct score, thinned. None if no label is wrong
    or all are.
    """
    auc = clean_auc(label_score, ~is_wrong)
    if auc is None:
        return None
    order = np.argsort(label_score, kind="stable")
    found = np.cumsum(is_wrong[order])
    last_of_score = np.flatnonzero(np.append(np.diff(label_score[order]) > 0, True))  # equal scores are one point
    recall = found[last_of_score] / found[-1]
    precision = found[last_of_score] / (last_of_score + 1)
    shown = np.unique(np.linspace(0, len(recall) - 1, _MAX_POINTS).round().astype(int))
    hits = int((is_issue & is_wrong).sum())
    return {
        "auc": auc,
        "average_precision": float(np.sum(np.diff(recall, prepend=0) * precision)),
        "precision": hits / int(is_issue.sum()) if is_issue.any() else None,
        "recall": hits / int(is_wrong.sum()),
        "num_wrong": int(is_wrong.sum()),
        "curve": np.stack([recall, precision], axis=1)[shown].tolist(),
    }
