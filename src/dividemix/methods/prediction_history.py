"""What the net has predicted for each sample so far, and what follows for the given labels.

A single epoch's prediction is noisy, and late ones repeat labels that were learned by heart. The running mean over the
epochs keeps what the net learned before, at no cost: the predictions are those of the training steps.

Shapes: N samples, R rows in a step, C classes.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from dividemix.algorithm.divide import clean_probability, normalise
from dividemix.methods.rare_classes import FEW

HISTORY = "history"  # State.samples: (N, C) float32, the running mean of the predictions; zeros before the first one
_LEAST = 1e-4  # a smaller probability says no more against a label


def remember(history: Tensor, index: Tensor, probs: Tensor, decay: float) -> None:
    """Move the rows `index` (R,) of the history (N, C), in place, towards the predictions (R, C) of a step.

    The first prediction of a sample is its history. If a step has a sample twice, the mean of its predictions counts.
    """
    rows, place = index.unique(return_inverse=True)
    sums = history.new_zeros(len(rows), history.shape[1]).index_add_(0, place, probs.to(history))
    before = history[rows]
    is_known = (before.sum(dim=1, keepdim=True) > 0).to(before.dtype)
    history[rows] = torch.lerp(sums / place.bincount()[:, None], before, decay * is_known)


def predictions(history: Tensor, labels: Tensor) -> Tensor:
    """The history (N, C), with the given label (N,) as the prediction of a sample that has none yet."""
    given = F.one_hot(labels, history.shape[1]).to(history.dtype)
    return torch.where(history.sum(dim=1, keepdim=True) > 0, history, given)


def clean_prob_by_class(probs: Tensor, labels: Tensor) -> Tensor:
    """W (N,) float64: the probability that a label is right, by a mixture over the losses of each given label.

    Labels are compared with those of the same class only, so that a hard or rare class is not dropped as a whole.
    """
    losses = -probs.gather(1, labels[:, None])[:, 0].double().clamp(min=_LEAST).log()
    clean_prob = torch.ones_like(losses)
    for label in labels.unique():
        group = labels == label
        if group.sum() >= FEW:  # of fewer there is no mixture: their labels are kept
            clean_prob[group] = clean_probability(normalise(losses[group]))[0]
    return clean_prob


def refined(probs: Tensor, labels: Tensor, clean_prob: Tensor, mistakes: Tensor) -> Tensor:
    """Soft labels (N, C): the given label with weight w, the net's guess with the rest.

    The guess is the prediction (N, C), times how often each class gets the given label by mistake: mistakes (C, C).
    """
    given = F.one_hot(labels, probs.shape[1]).to(probs.dtype)
    guess = probs * mistakes.T[labels].to(probs.dtype) + _LEAST * given  # never all zeros
    return torch.lerp(guess / guess.sum(dim=1, keepdim=True), given, clean_prob.to(probs.dtype)[:, None])
