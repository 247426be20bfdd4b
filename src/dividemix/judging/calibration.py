"""How sure it is that a label is wrong: "90 %" should be right nine times in ten. True labels are not needed.

Samples that were held out have noisy labels that no network has seen. The networks' predictions, sharpened or softened
by a temperature, must explain these labels through a noise matrix: temperature and matrix are those under which the
held-out labels are likeliest (EM, from the matrix of the opinion of the method). Then Bayes' rule gives the
probability that each label is wrong. Networks believe the labels that they were trained on too much, so the odds of
these samples get a factor: the share of wrong labels among them is that among the held-out samples. Without held-out
samples, the method's opinion is taken as it is.

Shapes: N samples, n of them held out, C classes.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dividemix.judging.before_labels import Predictions
from dividemix.judging.vote_evidence import weighed
from dividemix.methods.surest import SURE

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

_FEWEST = 100  # held-out samples that are needed
_MOST = 5000  # held-out samples that are used: more change nothing but the time
_BLOCK = 1_000_000  # numbers in a block of predictions: of many samples, a few such blocks are small next to them
_TEMPERATURES = np.exp(np.linspace(np.log(0.2), np.log(5.0), 81))
_SEEN = 0.05  # deviation of the share of wrong labels among seen samples from that among held-out ones, beforehand
_ROUNDS = 10  # of EM
_PRIOR = 10.0  # held-out samples of a class that count as much as all opinions
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
    probs: Predictions | None,
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
    if len(unseen) < len(labels):
        matrix = _fitted(probs[some], labels[some], matrix)
    temperature = _temperature(probs[some], labels[some], matrix)
    wrong_prob = _as_held_out(_wrong(probs, labels, matrix, temperature), unseen)
    wrong_prob = weighed(wrong_prob, evidence)
    is_cross_fitted = len(unseen) == len(labels)
    low, high = _bounds(wrong_prob, SURE * float(wrong_prob.sum()) if is_cross_fitted else math.inf)
    other = float(opinion.sum())  # an estimate that is wrong in other ways
    return Calibration(wrong_prob, min(low, other), max(high, other), temperature)


def noise_matrix(probs: Predictions, labels: Labels, clean_prob: Floats) -> Floats:
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


def _fitted(probs: NDArray[np.float32], labels: Labels, matrix: Floats) -> Floats:
    """The noise matrix under which held-out labels (n,) are likelier than under the given one: a few steps of EM.

    For each class the given matrix counts as much as a few samples.
    """
    fitted = matrix
    for _ in range(_ROUNDS):
        joint = _softened(probs, _temperature(probs, labels, fitted)) * fitted.T[labels]
        joint /= joint.sum(axis=1, keepdims=True)
        counts = _PRIOR * matrix
        np.add.at(counts.T, labels, joint)
        fitted = counts / counts.sum(axis=1, keepdims=True)
    return fitted


def _score(probs: NDArray[np.float32], labels: Labels, matrix: Floats, temperature: float) -> float:
    """The log-likelihood of held-out labels (n,) through the matrix, and that of the temperature."""
    each = (_softened(probs, temperature) * matrix.T[labels]).sum(axis=1)
    return float(np.log(np.maximum(each, 1e-12)).sum() - (np.log(temperature) / _SPREAD) ** 2 / 2)


def _wrong(probs: Predictions, labels: Labels, matrix: Floats, temperature: float) -> Floats:
    """P(label is wrong | sample, label) (N,), by Bayes' rule."""
    wrong = np.empty(len(labels))
    for rows in _blocks(probs):
        given = labels[rows]
        joint = _softened(probs[rows], temperature) * matrix.T[given]
        right = joint[np.arange(len(given)), given]
        wrong[rows] = 1 - right / np.maximum(joint.sum(axis=1), 1e-30)
    return wrong.clip(0.0, 1.0)


def _as_held_out(wrong_prob: Floats, unseen: Labels) -> Floats:
    """The probabilities (N,) with other odds for samples that were seen, all times one factor.

    With it their mean is that of the held-out samples; of few held-out samples the mean is believed in part.
    """
    is_seen = np.ones(len(wrong_prob), dtype=bool)
    is_seen[unseen] = False
    if not is_seen.any():
        return wrong_prob
    held_out, seen = wrong_prob[unseen], wrong_prob[is_seen]
    belief = _SEEN**2 / (_SEEN**2 + held_out.var() / len(held_out))
    moved = wrong_prob.copy()
    moved[is_seen] = _with_mean(seen, float(seen.mean() + belief * (held_out.mean() - seen.mean())))
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


def _bounds(wrong_prob: Floats, num_found: float = math.inf) -> tuple[float, float]:
    """Bounds of how many labels are wrong: since the expected number is not exact, and by chance.

    `num_found` is how many wrong labels there are among the samples off which their share is read.
    """
    deviation = math.sqrt(_MISFIT**2 + 1 / (1 + num_found))
    expected, factor = float(wrong_prob.sum()), math.exp(_DEVIATIONS * deviation)
    chance = _DEVIATIONS * float(np.sqrt((wrong_prob * (1 - wrong_prob)).sum()))
    return max(expected / factor - chance, 0.0), min(expected * factor + chance, float(len(wrong_prob)))


def _softened(probs: NDArray[np.float32], temperature: float) -> Floats:
    """The predictions (n, C) at a temperature: above 1 they are less sure."""
    logs = np.log(np.maximum(probs.astype(np.float64), 1e-12)) / temperature
    powers = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _blocks(probs: Predictions) -> Iterator[slice]:
    """Slices of the samples that fit into memory."""
    size = max(1, _BLOCK // probs.shape[1])
    for first in range(0, len(probs), size):
        yield slice(first, first + size)
