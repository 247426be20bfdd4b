"""How plausible the nets find the given labels, beside the likeliest other classes. Not the paper's: docs/fidelity.md.

Shapes: K nets, N samples, C classes.
"""

import torch
from torch import Tensor


def strongest_rivals(scores: Tensor, labels: Tensor) -> Tensor:
    """For each sample the class other than its label (N,) with the largest score; scores (K, N, C) to (K, N)."""
    given = labels.expand(scores.shape[:-1])[..., None]
    return scores.scatter(-1, given, -torch.inf).argmax(dim=-1)


def plausibility(losses: Tensor, rivals: Tensor, rival_losses: Tensor, labels: Tensor) -> Tensor:
    """The given labels' share against their strongest rivals (N,), from the nets' losses (K, N) for both.

    A half is on a par. A class counts relative to its mean probability among the samples labelled so, the thresholds of
    confident learning (Northcutt et al.): a net that is never sure of shirts is no witness against a label that says
    shirt. A class that no sample is labelled with counts as it is. Each net judges for itself; the mean is returned.
    """
    log_mean = _log_mean_probability(losses.double(), labels, num_classes=int(torch.maximum(labels, rivals).max()) + 1)
    own = losses.double() + log_mean[:, labels]
    others = rival_losses.double() + log_mean.gather(1, rivals)
    return torch.sigmoid(others - own).mean(dim=0)


def _log_mean_probability(losses: Tensor, labels: Tensor, num_classes: int) -> Tensor:
    """(K, C): the logarithm of exp(-loss), averaged over the samples with that label; 0 for a class without any."""
    counts = torch.bincount(labels, minlength=num_classes)
    largest = losses.new_zeros(len(losses), num_classes)
    largest = largest.scatter_reduce(1, labels.expand_as(losses), -losses, "amax", include_self=False)
    sums = torch.zeros_like(largest).index_add(1, labels, torch.exp(-losses - largest[:, labels]))
    return (largest + torch.log(sums / counts)).where(counts > 0, 0.0)
