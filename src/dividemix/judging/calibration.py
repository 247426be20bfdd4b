"""How sure it is that a label is wrong: "90 %" should be right nine times in ten. True labels are not needed.

Samples that were held out have noisy labels that no network has seen. The networks' predictions, sharpened or softened
by a temperature, must explain these labels through a noise matrix, which follows from the method's opinion. The
temperature is that under which the held-out labels are likeliest. Then Bayes' rule gives the probability that each
label is wrong. Without held-out samples, the method's opinion is taken as it is.

How many labels are wrong is estimated twice, both times from the held-out samples. With a noise matrix that all samples
tell it is too low: networks believe the labels that they were trained on. With one that the held-out samples tell alone
it is too high: mistakes of the networks look like wrong labels. The odds of all probabilities are changed such that the
expected share of wrong labels is in the middle.

Shapes: N samples, n of them held out, C classes.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dividemix.judging.vote_evidence import weighed

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

_FEWEST = 100  # held-out samples that are needed
_MOST = 5000  # held-out samples that are used: more change nothing but the time
_BLOCK = 4_000_000  # numbers in a block of predictions
_TEMPERATURES = np.exp(np.linspace(np.log(0.2), np.log(5.0), 81))
_SEEN = 0.05  # deviation of the share of wrong labels among seen samples from that among held-out ones, beforehand
_SPREAD = 0.3  # of the temperature's logarithm around 0 before any label is seen: a few hundred labels tell little
# Deviation of the logarithm of an expected number of wrong labels from that of the true one, as seen with noise that we
# made (LOG.md). The noise does not follow a matrix exactly, and hard samples look like wrong labels.
_MISFIT = 0.2
_MOST_ODDS = 5.0  # the logarithm of the largest factor by which seen samples get other odds
_HALVINGS = 40  # of the interval in which the factor is searched
_DEVIATIONS = 1.645  # a normal distribution is within so many of them nine times in ten


@dataclass(frozen=True, eq=False)
class Calibration:
    """The probability (N,) that each label is wrong, and bounds of how many are: nine times in ten they hold.

    The temperature is None if there were no held-out samples to fit it.
    """

    wrong_prob: Floats
    low: float
    high: float
    temperature: float | None

    @property
    def expected(self) -> float:
        """How many labels are expected to be wrong."""
        return float(self.wrong_prob.sum())


def calibrate(
    probs: NDArray[np.float32] | None,
    labels: Labels,
    clean_prob: Floats,
    unseen: Labels | None = None,
    evidence: Floats | None = None,
) -> Calibration:
    """The calibration of predictions (N, C) and of the method's opinion (N,) of the labels (N,).

    The predictions do not use the labels. `unseen` (n,) are the indices of samples whose labels no network has seen.
    `evidence` (N,) is what annotators' votes add (vote_evidence.py).
    """
    opinion = weighed(1 - clean_prob, evidence)
    if probs is None or unseen is None or len(unseen) < _FEWEST:
        return Calibration(opinion, *_bounds(opinion), None)
    some = unseen[:: -(-len(unseen) // _MOST)]
    matrix = noise_matrix(probs, labels, 1 - opinion)
    temperature = _temperature(probs[some], labels[some], matrix)
    wrong_prob = _wrong(probs, labels, matrix, temperature)
    if len(unseen) < len(labels):
        too_low = float(wrong_prob[some].mean())
        too_high = float(_wrong_by_themselves(probs[some], labels[some], opinion[some]).mean())
        wrong_prob = _with_share(wrong_prob, unseen, _middle(too_low, too_high))
    wrong_prob = weighed(wrong_prob, evidence)
    low, high = _bounds(wrong_prob)
    other = float(opinion.sum())  # an estimate that is wrong in other ways
    return Calibration(wrong_prob, min(low, other), max(high, other), temperature)


def noise_matrix(probs: NDArray[np.float32], labels: Labels, clean_prob: Floats) -> Floats:
    """P(given label j | true label c) (C, C), if the true class of a wrong label is each other class as predicted."""
    num_classes = probs.shape[1]
    counts = np.full((num_classes, num_classes), 1 / num_classes)  # given, true; one more of each: none is impossible
    for rows in _blocks(probs):
        given, own = labels[rows], np.arange(len(labels[rows]))
        true = probs[rows].astype(np.float64)
        true[own, given] = 0.0
        true *= ((1 - clean_prob[rows]) / np.maximum(true.sum(axis=1), 1e-12))[:, None]
        true[own, given] = clean_prob[rows]
        for label in np.unique(given):
            counts[label] += true[given == label].sum(axis=0)
    return np.asarray(counts.T / counts.sum(axis=0)[:, None])


def _temperature(probs: NDArray[np.float32], labels: Labels, matrix: Floats) -> float:
    """The temperature of predictions (n, C) under which held-out labels (n,) are likeliest."""
    return float(_TEMPERATURES[np.argmax([_score(probs, labels, matrix, one) for one in _TEMPERATURES])])


def _middle(first: float, second: float) -> float:
    """The probability whose odds are the geometric mean of those of two."""
    first, second = (min(max(one, 1e-6), 1 - 1e-6) for one in (first, second))
    return 1 / (1 + math.sqrt((1 - first) * (1 - second) / (first * second)))


def _score(probs: NDArray[np.float32], labels: Labels, matrix: Floats, temperature: float) -> float:
    """The log-likelihood of held-out labels (n,) through the matrix, and that of the temperature."""
    each = (_softened(probs, temperature) * matrix.T[labels]).sum(axis=1)
    return float(np.log(np.maximum(each, 1e-12)).sum() - (np.log(temperature) / _SPREAD) ** 2 / 2)


def _wrong(probs: NDArray[np.float32], labels: Labels, matrix: Floats, temperature: float) -> Floats:
    """P(label is wrong | sample, label) (N,), by Bayes' rule."""
    wrong = np.empty(len(labels))
    for rows in _blocks(probs):
        given = labels[rows]
        joint = _softened(probs[rows], temperature) * matrix.T[given]
        right = joint[np.arange(len(given)), given]
        wrong[rows] = 1 - right / np.maximum(joint.sum(axis=1), 1e-30)
    return wrong.clip(0.0, 1.0)


def _wrong_by_themselves(probs: NDArray[np.float32], labels: Labels, opinion: Floats) -> Floats:
    """`_wrong` of held-out samples (n,), by a matrix and a temperature that they alone tell."""
    matrix = noise_matrix(probs, labels, 1 - opinion)
    return _wrong(probs, labels, matrix, _temperature(probs, labels, matrix))


def _with_share(wrong_prob: Floats, unseen: Labels, share: float) -> Floats:
    """The probabilities (N,) with a mean of `share`: the odds of the samples that are held out all have one factor.

    Those of the others have another one. Few held-out samples are believed in part, as what they say is partly chance.
    """
    is_seen = np.ones(len(wrong_prob), dtype=bool)
    is_seen[unseen] = False
    belief = _SEEN**2 / (_SEEN**2 + wrong_prob[unseen].var() / len(unseen))
    moved = wrong_prob.copy()
    for group in (~is_seen, is_seen):
        before = float(wrong_prob[group].mean())
        moved[group] = _with_mean(wrong_prob[group], before + belief * (share - before))
    return moved


def _with_mean(prob: Floats, mean: float) -> Floats:
    """The probabilities whose odds are those of `prob` times the factor that gives them this mean."""
    low, high = -_MOST_ODDS, _MOST_ODDS
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _times(prob, math.exp(middle)).mean() < mean else (low, middle)
    return _times(prob, math.exp(low))


def _times(prob: Floats, factor: float) -> Floats:
    """The probabilities whose odds are those of `prob` times a factor."""
    return np.asarray(factor * prob / (1 - prob + factor * prob))


def _bounds(wrong_prob: Floats) -> tuple[float, float]:
    """Bounds of how many labels are wrong: since the expected number is not exact, and by chance."""
    expected, factor = float(wrong_prob.sum()), float(np.exp(_DEVIATIONS * _MISFIT))
    chance = _DEVIATIONS * float(np.sqrt((wrong_prob * (1 - wrong_prob)).sum()))
    return max(expected / factor - chance, 0.0), min(expected * factor + chance, float(len(wrong_prob)))


def _softened(probs: NDArray[np.float32], temperature: float) -> Floats:
    """The predictions (n, C) at a temperature: above 1 they are less sure."""
    logs = np.log(np.maximum(probs.astype(np.float64), 1e-12)) / temperature
    powers = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _blocks(probs: NDArray[np.float32]) -> Iterator[slice]:
    """Slices of the samples that fit into memory."""
    size = max(1, _BLOCK // probs.shape[1])
    for first in range(0, len(probs), size):
        yield slice(first, first + size)
