"""The terms of the total loss (Section 3), as pure functions of logits (R, C) and soft targets (R, C)."""

import math

import torch
from torch import Tensor
from torch.nn import functional as F


def loss_x(logits: Tensor, targets: Tensor) -> Tensor:
    """L_X: cross-entropy between the mixed labels and the predictions, mean over rows (Eq. 9)."""
    return -(targets * F.log_softmax(logits, dim=1)).sum(dim=1).mean()


def loss_u(logits: Tensor, targets: Tensor) -> Tensor:
    """L_U: squared error between the guessed labels and the predicted probabilities (Eq. 10).

    The mean is taken over rows *and* classes, as in the released code: Table 7's lambda_u belong to that scale.
    """
    return F.mse_loss(F.softmax(logits, dim=1), targets)


def loss_reg(logits: Tensor) -> Tensor:
    """L_reg: Kullback-Leibler divergence from the mean prediction of all rows to the uniform prior (Eq. 11)."""
    num_rows, num_classes = logits.shape
    log_mean_prob = torch.logsumexp(F.log_softmax(logits, dim=1), dim=0) - math.log(num_rows)
    return -math.log(num_classes) - log_mean_prob.mean()


def negative_entropy(logits: Tensor) -> Tensor:
    """-H, the confidence penalty: mean over rows of sum_c p_c log p_c (Eq. 2)."""
    log_prob = F.log_softmax(logits, dim=1)
    return (log_prob.exp() * log_prob).sum(dim=1).mean()


def ramp_up(epoch: float, warmup_epochs: int, rampup_epochs: int) -> float:
    """The share of lambda_u in force after `epoch` epochs (a fraction within one): linear from 0 to 1 after warm-up."""
    if rampup_epochs == 0:
        return 1.0
    return min(max((epoch - warmup_epochs) / rampup_epochs, 0.0), 1.0)
