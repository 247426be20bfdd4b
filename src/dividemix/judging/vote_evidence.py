"""What the votes of several annotators say against the label that is their consensus, besides what networks say.

The networks know how noisy labels are on average. Votes tell more of a single label: it is sure if all good annotators
agree, and doubtful if they do not. This is evidence of its own, so that it moves the odds that a label is wrong.

Shapes: N samples.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_MOST = 0.99  # the highest confidence that is believed: annotators make the same mistakes more often than is assumed


def vote_evidence(confidence: Floats) -> Floats:
    """The logarithm (N,) of the factor of the odds that each label is wrong, from the confidence (N,) in the consensus.

    It is 0 for a label that is as doubtful as all are on average.
    """
    wrong = 1 - confidence.clip(1 - _MOST, _MOST)
    return _log_odds(wrong) - _log_odds(wrong.mean())


def weighed(wrong_prob: Floats, evidence: Floats | None) -> Floats:
    """The probabilities (N,) or (K, N) that labels are wrong, with the evidence (N,), if there is any."""
    if evidence is None:
        return wrong_prob
    return np.asarray(1 / (1 + np.exp(-_log_odds(wrong_prob) - evidence)))


def _log_odds(prob: Floats) -> Floats:
    prob = np.clip(prob, 1e-9, 1 - 1e-9)
    return np.asarray(np.log(prob / (1 - prob)))
