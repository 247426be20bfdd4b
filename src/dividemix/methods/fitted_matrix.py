"""The noise matrix T[c, j] = P(given label j | true label c), fitted together with how sure predictions should be.

All probabilities of classes are out of sample: nothing that predicts a sample was trained on its label.

Shapes: N samples, C classes.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from dividemix.methods.noise_matrix import pooled, sampled, true_label_probs

_ROUNDS = 30
_STEP = 1.1  # factor of the sharpness in a round of EM
_BORROWED = 20.0  # samples of each class, invented in proportion to all classes
_CACHED = 2**16  # numbers of one kind that stay in a processor's cache while they are computed with


class Fitted(NamedTuple):
    """A noise matrix (C, C), the sharpness of the predictions that goes with it, and the mean log-likelihood."""

    matrix: Tensor
    sharpness: float
    likelihood: float


def fitted(log_probs: Tensor, labels: Tensor, matrix: Tensor) -> Fitted:
    """T under which the given labels (N,) are likeliest, from predictions (N, C) of the *true* labels: by EM.

    Predictions of regularised heads are too flat, so their logarithms are multiplied by a sharpness, which is fitted,
    too; else T would understate the noise. A class with few samples borrows from the others.
    """
    log_probs, labels = sampled(log_probs, labels)
    likelihoods, posterior = torch.empty_like(log_probs[:, 0]), torch.empty_like(log_probs)
    sharpness = likelihood = 1.0
    for _ in range(_ROUNDS):
        tried = {}
        for factor in (1.0, 1 / _STEP, _STEP):
            for rows in _blocks(log_probs):
                sharp = torch.log_softmax(sharpness * factor * log_probs[rows], dim=1)
                likelihoods[rows] = log_likelihoods(sharp, labels[rows], matrix)
            tried[likelihoods.mean().item()] = sharpness * factor
        likelihood = max(tried)
        sharpness = tried[likelihood]
        for rows in _blocks(log_probs):
            sharp = torch.log_softmax(sharpness * log_probs[rows], dim=1)
            posterior[rows] = true_label_probs(sharp, labels[rows], matrix)
        counts = torch.zeros_like(matrix).index_add(0, labels, posterior).T
        matrix = counts + _BORROWED * pooled(counts)
        matrix = matrix / matrix.sum(dim=1, keepdim=True)
    return Fitted(matrix, sharpness, likelihood)


def log_likelihoods(log_probs: Tensor, labels: Tensor, matrix: Tensor) -> Tensor:
    """The log-likelihood (N,) of the given labels (N,) through T, from predictions (N, C) of the true labels."""
    return torch.logsumexp(log_probs + matrix.T.log()[labels], dim=1)


def _blocks(log_probs: Tensor) -> Iterator[slice]:
    """Slices of the samples for which a few numbers of each class fit into a processor's cache."""
    size = max(1, _CACHED // log_probs.shape[1])
    yield from (slice(first, first + size) for first in range(0, len(log_probs), size))
