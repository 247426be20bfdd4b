"""From per-sample losses to clean probabilities to a labeled and an unlabeled set (Section 3.1).

Shapes: N samples, all of them, indexed by their position in the training data.
"""

import warnings
from dataclasses import dataclass

import torch
from torch import Tensor

from dividemix.algorithm.mixture import fit_gaussians
from dividemix.errors import DegenerateDivisionWarning

# Normalised losses closer together than this, half the root of the mixture's variance floor, are one heap: which of
# its samples two components would call clean is decided by rounding.
_MIN_SPAN = 0.01


@dataclass(frozen=True)
class Division:
    """Sample indices whose label is kept (X_e) and whose label is dropped (U_e), and every sample's w_i (N,)."""

    labeled: Tensor
    unlabeled: Tensor
    clean_prob: Tensor


def normalise(losses: Tensor) -> Tensor:
    """Losses (N,) moved and scaled to [0, 1], in float64; zeros where all are equal."""
    losses = losses.double()
    low, high = losses.min(), losses.max()
    return torch.zeros_like(losses) if low == high else (losses - low) / (high - low)


def clean_probability(normalised: Tensor, labels: Tensor, *, division: str) -> Tensor:
    """W (N,): posterior of the small-loss component, from one mixture over all samples or one per given label.

    Losses that are all but equal tell nothing against any label: the samples of such a group get probability 1.
    """
    if normalised.min() == normalised.max():
        _warn("all losses are equal: no label can be told from another, so all are kept in this epoch")
        return torch.ones_like(normalised)
    if division == "global":
        return fit_gaussians(normalised).low_prob(normalised)
    clean_prob = torch.ones_like(normalised)
    for label in labels.unique():
        group = labels == label
        values = normalised[group]
        if values.max() - values.min() > _MIN_SPAN:
            clean_prob[group] = fit_gaussians(values).low_prob(values)
    return clean_prob


def divide(clean_prob: Tensor, threshold: float, min_labeled: int) -> Division:
    """The division at tau: labeled where clean_prob (N,) >= threshold, unlabeled elsewhere.

    A division without labeled samples could not train: the `min_labeled` most probable ones are taken instead.
    """
    is_labeled = clean_prob >= threshold
    if not is_labeled.any():
        _warn(f"no sample reaches a clean probability of {threshold:g}: the {min_labeled} likeliest ones are taken")
        is_labeled[torch.topk(clean_prob, min(min_labeled, len(clean_prob))).indices] = True
    elif is_labeled.all():
        _warn("every sample passes for clean: this epoch trains without unlabeled samples")
    return Division(is_labeled.nonzero().squeeze(1), (~is_labeled).nonzero().squeeze(1), clean_prob)


def _warn(message: str) -> None:
    warnings.warn(message, DegenerateDivisionWarning, stacklevel=3)
