"""The true labels behind the votes of several annotators, and how far each annotator can be trusted.

Dawid and Skene (1979): every annotator a has a confusion matrix P(vote l | true class c). Expectation and maximisation
alternate: the true labels, given the matrices; the matrices, given the true labels. An annotator with few votes on a
class is taken to be as accurate as all are on average: so many votes are added to each row. Without them, a class that
got a single odd vote would explain any votes.

Shapes: N samples, A annotators, C classes. A vote is a class number, or -1 if there is none.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_ADDED = 5.0  # votes of an average annotator, added to each row of an annotator's matrix
_TINY = 0.01  # samples added to each class, so that none is impossible
_MOST_ROUNDS = 200
_SETTLED = 1e-7  # the largest change of a probability after which nothing more happens


class Estimate(NamedTuple):
    """What the votes say."""

    probs: NDArray[np.float64]  # (N, C): of the true label
    confusion: NDArray[np.float64]  # (A, C, C): P(vote l | true class c) of each annotator
    prior: NDArray[np.float64]  # (C,): how frequent the classes are


def dawid_skene(votes: NDArray[np.int64], num_classes: int) -> Estimate:
    """The estimate from votes (N, A), each in [-1, C). The first guess of the labels are the shares of the votes."""
    sample, annotator = np.nonzero(votes >= 0)
    vote = votes[sample, annotator]
    num_samples, num_annotators = votes.shape
    probs = np.zeros((num_samples, num_classes))
    np.add.at(probs, (sample, vote), 1.0)
    total = probs.sum(axis=1, keepdims=True)
    probs = np.where(total > 0, probs / np.maximum(total, 1), 1 / num_classes)
    for _ in range(_MOST_ROUNDS):
        counts = np.zeros((num_annotators, num_classes, num_classes))  # annotator, vote, true class
        np.add.at(counts, (annotator, vote), probs[sample])
        accuracy = (probs[sample, vote].sum() + 1) / (len(vote) + 2)  # of all annotators; never quite 0 or 1
        average = np.full((num_classes, num_classes), (1 - accuracy) / max(num_classes - 1, 1))
        np.fill_diagonal(average, accuracy)
        confusion = (counts + _ADDED * average) / (counts.sum(axis=1, keepdims=True) + _ADDED)
        prior = (probs[total[:, 0] > 0].sum(axis=0) + _TINY) / ((total > 0).sum() + _TINY * num_classes)
        log_probs = np.tile(np.log(prior), (num_samples, 1))
        np.add.at(log_probs, sample, np.log(confusion[annotator, vote]))
        log_probs -= log_probs.max(axis=1, keepdims=True)
        before, probs = probs, np.exp(log_probs)
        probs /= probs.sum(axis=1, keepdims=True)
        if np.abs(probs - before).max(initial=0.0) < _SETTLED:
            break
    return Estimate(probs, confusion.transpose(0, 2, 1), prior)
