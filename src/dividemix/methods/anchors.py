"""How noisy the labels of each class are, by anchors: samples that surely belong to a class (Patrini et al., 2017).

A net that has learned noisy labels, but none by heart, is unsure even of a sample that surely belongs to a class: it
predicts how often each label is given to that class.

Shapes: N samples, C classes.
"""

import torch
from torch import Tensor

_SHARE = 0.1  # of a class's samples that are its anchors
_ROUNDS = 50


def anchor_matrix(probs: Tensor) -> Tensor:
    """T (C, C), T[c, j] = P(given label j | class c), from predictions (N, C) of the given labels.

    Row c is the mean prediction for the samples with the largest probability of class c: a tenth of N / C.
    """
    num_samples, num_classes = probs.shape
    num_anchors = min(max(round(_SHARE * num_samples / num_classes), 5), num_samples)
    anchors = probs.topk(num_anchors, dim=0).indices.T  # (C, number)
    return probs[anchors].mean(dim=1)


def class_shares(probs: Tensor, matrix: Tensor) -> Tensor:
    """The shares (C,) of the true classes for which T explains the mean prediction best: by EM."""
    mean = probs.mean(dim=0)
    shares = torch.full_like(mean, 1 / len(mean))
    for _ in range(_ROUNDS):
        shares = shares * (matrix @ (mean / (shares @ matrix).clamp(min=1e-12)))
    return shares / shares.sum()


def noise_by_label(matrix: Tensor, shares: Tensor) -> Tensor:
    """The share of wrong labels (C,) among the samples with each given label, by Bayes."""
    joint = shares[:, None] * matrix
    return 1 - joint.diagonal() / joint.sum(dim=0).clamp(min=1e-12)


def mistaken_for(matrix: Tensor) -> Tensor:
    """M (C, C): how often class c gets the label j, compared with the class that gets it by mistake most often.

    The diagonal is 1, as for the most frequent mistake: whether a label is right is decided elsewhere.
    """
    own = torch.eye(len(matrix), dtype=torch.bool, device=matrix.device)
    mistakes = matrix.masked_fill(own, 0.0)
    return (mistakes / mistakes.amax(dim=0, keepdim=True).clamp(min=1e-12)).masked_fill(own, 1.0)
