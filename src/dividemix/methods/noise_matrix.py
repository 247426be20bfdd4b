"""The noise matrix T[c, j] = P(given label j | true label c): how it is estimated, and what follows from it.

All probabilities of classes are out of sample: nothing that predicts a sample was trained on its label.

Shapes: N samples, C classes.
"""

import torch
from torch import Tensor

from dividemix.methods.rare_classes import FEWEST
from dividemix.nets.noise_channel import without_noise as without_noise

_MOST = 100_000  # samples from which the matrix is estimated: more change nothing but the time


def first_matrix(log_probs: Tensor, labels: Tensor) -> Tensor:
    """T (C, C) by confident learning (Northcutt et al.), from predictions (N, C) of the *given* labels (N,).

    A sample counts for the class whose probability is largest compared with its mean among the samples with that
    label. It tends to overstate the noise. A class that nobody learned has a mean near zero, which would draw the
    samples of all others: no sample counts for it, and its row is what the other classes suggest.
    """
    log_probs, labels = sampled(log_probs, labels)
    probs = log_probs.exp()
    num_classes = probs.shape[1]
    counts = torch.bincount(labels, minlength=num_classes)
    sums = probs.new_zeros(num_classes).index_add(0, labels, probs.gather(1, labels[:, None])[:, 0])
    means = (sums / counts).where(counts > 0, 1.0).clamp(min=1e-12)
    is_learned = (counts >= FEWEST) & (means > probs.mean(dim=0))
    guesses = (probs / means).masked_fill(~is_learned, -1.0).argmax(dim=1)
    joint = torch.bincount(guesses * num_classes + labels, minlength=num_classes**2).view(num_classes, -1)
    joint = joint.to(probs.dtype) * is_learned[:, None]  # without any learned class, every guess is the first one
    suggested = pooled(joint)
    return torch.where(is_learned[:, None], _rows_to_one(joint), suggested / suggested.sum(dim=1, keepdim=True))


def pooled(counts: Tensor) -> Tensor:
    """The matrix (C, C) that all classes together suggest: one share of right labels, one distribution of wrong ones.

    Counts are (C, C). No class is impossible.
    """
    off_diagonal = 1 - torch.eye(len(counts), dtype=counts.dtype, device=counts.device)
    right = (counts.diagonal().sum() + 1) / (counts.sum() + 2)
    wrong = ((counts * off_diagonal).sum(dim=0) + 1) * off_diagonal
    wrong = wrong / wrong.sum(dim=1, keepdim=True).clamp(min=1)
    return right * (1 - off_diagonal) + (1 - right) * wrong


def true_label_probs(log_probs: Tensor, labels: Tensor, matrix: Tensor) -> Tensor:
    """P(true label | sample, given label) (N, C), by Bayes, from predictions (N, C) of the true labels."""
    return torch.softmax(log_probs + matrix.T[labels].log(), dim=1)


def sampled(log_probs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Predictions (n, C) and labels (n,) of at most _MOST samples, drawn with a fixed seed: data have an order."""
    if len(labels) > _MOST:
        index = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))[:_MOST].to(labels.device)
        log_probs, labels = log_probs[index], labels[index]
    return log_probs, labels


def _rows_to_one(counts: Tensor) -> Tensor:
    """Counts (C, C) as probabilities. One more of each count: no class is impossible."""
    return (counts + 1) / (counts + 1).sum(dim=1, keepdim=True)
