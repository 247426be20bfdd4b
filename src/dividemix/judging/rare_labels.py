"""Calibration where some labels cannot be judged, because their classes are too rare: nothing is concluded from them.

Shapes: N samples, n of them held out, C classes.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dividemix.judging.before_labels import Predictions
from dividemix.judging.calibration import Calibration, Floats, Labels, calibrate
from dividemix.judging.vote_evidence import weighed


def calibrate_judged(
    probs: Predictions | None,
    labels: Labels,
    clean_prob: Floats,
    unseen: Labels | None,
    evidence: Floats | None,
    *,
    is_judged: NDArray[np.bool_] | None,
) -> Calibration:
    """As `calibrate`, of the labels that can be judged (N,); of the others the same share is expected to be wrong.

    Without any that can be judged, no label is expected to be wrong. Votes of annotators count for all.
    """
    if is_judged is None or is_judged.all():
        return calibrate(probs, labels, clean_prob, unseen, evidence)
    if not is_judged.any():
        return Calibration(np.zeros(len(labels)), 0.0, float(len(labels)), None)
    held_out = None if unseen is None else np.flatnonzero(np.isin(np.flatnonzero(is_judged), unseen))
    found = calibrate(
        None if probs is None else probs[is_judged],
        labels[is_judged],
        clean_prob[is_judged],
        held_out,
        None if evidence is None else evidence[is_judged],
    )
    wrong_prob = weighed(np.full(len(labels), found.wrong_prob.mean()), evidence)
    wrong_prob[is_judged] = found.wrong_prob
    factor = len(labels) / is_judged.sum()
    return replace(found, wrong_prob=wrong_prob, low=float(factor * found.low), high=float(factor * found.high))
