"""MixMatch with label co-refinement and co-guessing (Section 3.2): pure functions.

Shapes: B samples in a batch, M views of each, C classes, R = 2 M B rows (labeled and unlabeled views together).
"""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F


def sharpen(probs: Tensor, temperature: float) -> Tensor:
    """Sharpen(p, T): each row (B, C) to the power 1/T, normalised again (Eq. 4)."""
    # In the log domain, so that a small temperature cannot make a whole row underflow to 0/0.
    return torch.softmax(torch.log(probs) / temperature, dim=-1)


def co_refine(labels: Tensor, clean_prob: Tensor, view_probs: Tensor, temperature: float) -> Tensor:
    """y_hat (B, C): given labels (B,) refined by the net's own predictions, guided by the peer's clean probability.

    y_bar = w y + (1 - w) p with p the mean of view_probs (M, B, C) over the views (Eq. 3), then sharpened (Eq. 4).
    """
    p = view_probs.mean(dim=0)
    w = clean_prob.to(p.dtype).unsqueeze(1)
    y = F.one_hot(labels, p.shape[1]).to(p.dtype)
    return sharpen(w * y + (1 - w) * p, temperature)


def co_guess(own_probs: Tensor, peer_probs: Tensor, temperature: float) -> Tensor:
    """Q (B, C): the two nets' predictions (M, B, C) averaged over nets and views, then sharpened (line 20)."""
    q_bar = (own_probs.mean(dim=0) + peer_probs.mean(dim=0)) / 2
    return sharpen(q_bar, temperature)


def mixup(
    images: Tensor, targets: Tensor, *, alpha: float, per_sample: bool, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Every row of images (R, ...) and targets (R, C) mixed with another row of the same batch (Eq. 5 to 8).

    lambda' = max(lambda, 1 - lambda) with lambda from Beta(alpha, alpha), drawn once for the batch as the released
    code does, or for each pair as the text says (`per_sample`).
    """
    rows = len(images)
    partner = torch.randperm(rows, generator=generator).to(images.device)
    # torch samples Beta from its global generator only: numpy samples it from a seed that ours gives.
    seed = int(torch.randint(2**62, (), generator=generator))
    draws = np.random.default_rng(seed).beta(alpha, alpha, size=rows if per_sample else 1)
    lam = torch.from_numpy(np.maximum(draws, 1 - draws)).to(images)
    mixed = torch.lerp(images[partner], images, _column(lam, images))
    return mixed, torch.lerp(targets[partner], targets, _column(lam, targets).to(targets))


def _column(values: Tensor, like: Tensor) -> Tensor:
    """Values (R,) or (1,) shaped to broadcast over the rows of `like`."""
    return values.view(-1, *[1] * (like.ndim - 1))
