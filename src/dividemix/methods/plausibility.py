"""How plausible the nets find the given labels, compared with the most likely other classes.

Shapes: K nets, N samples, C classes.
"""

import torch
from torch import Tensor


def plausibility(losses: Tensor, rivals: Tensor, rival_losses: Tensor, labels: Tensor) -> Tensor:
    """The given labels' share against their strongest rivals (N,), from the nets' losses (K, N) for both.

    At 0.5 both are equally plausible. The probability of a class is divided by its mean among the samples with that
    label, like the thresholds of confident learning (Northcutt et al.): a net that is never sure of shirts cannot speak
    against the label shirt. A class without samples is not divided. Returns the mean over the nets.
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
