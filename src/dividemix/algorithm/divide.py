"""From per-sample losses to clean probabilities to a labeled and an unlabeled set (Section 3.1).

Shapes: N samples, all of them, indexed by their position in the training data.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from dividemix.algorithm.beta_mixture import Betas, fit_betas
from dividemix.algorithm.mixture import Gaussians, fit_gaussians
from dividemix.algorithm.settings import MixtureName
from dividemix.errors import DegenerateDivisionWarning

Mixture = Gaussians | Betas
_FITS: dict[MixtureName, Callable[[Tensor], Mixture]] = {"gaussian": fit_gaussians, "beta": fit_betas}

# Normalised losses within this span, half the root of the mixture's variance floor, form one cluster: with two
# components, rounding would decide which of them are clean.
_MIN_SPAN = 0.01


@dataclass(frozen=True)
class Division:
    """Sample indices whose label is kept (X_e) and whose label is dropped (U_e), and every sample's w_i (N,).

    w_i is NaN for samples that are not among the n of the epoch. The rest shows how the division was made; training
    does not read it.
    """

    labeled: Tensor
    unlabeled: Tensor
    clean_prob: Tensor
    values: Tensor | None = None  # (n,) the normalised losses that were modelled
    mixtures: list[tuple[float, Mixture]] = field(default_factory=list)  # each with its share of all samples

    @property
    def divided(self) -> Tensor:
        """(N,): which samples were divided; in their order, those of `values`."""
        return ~self.clean_prob.isnan()

    def among(self, index: Tensor, num_samples: int) -> "Division":
        """The same division where sample i of n is sample index[i] of N; index (n,) is in ascending order."""
        clean_prob = self.clean_prob.new_full((num_samples,), torch.nan)
        clean_prob[index] = self.clean_prob
        return replace(self, labeled=index[self.labeled], unlabeled=index[self.unlabeled], clean_prob=clean_prob)


def normalise(losses: Tensor) -> Tensor:
    """Losses (N,) moved and scaled to [0, 1], in float64; zeros where all are equal."""
    losses = losses.double()
    low, high = losses.min(), losses.max()
    return torch.zeros_like(losses) if low == high else (losses - low) / (high - low)


def clean_probability(normalised: Tensor, mixture: MixtureName = "gaussian") -> tuple[Tensor, Mixture | None]:
    """W (N,): posterior of the small-loss component of a mixture over normalised losses (N,), and the mixture.

    Nearly equal losses do not speak against any label: every probability is 1, and the mixture is None.
    """
    if normalised.max() - normalised.min() <= _MIN_SPAN:
        return torch.ones_like(normalised), None
    fitted = _FITS[mixture](normalised)
    return fitted.low_prob(normalised), fitted


def divide(clean_prob: Tensor, threshold: float, min_labeled: int) -> Division:
    """The division at tau: labeled where clean_prob (N,) >= threshold, unlabeled elsewhere.

    Training needs labeled samples: if there are none, the `min_labeled` most probable ones are taken.
    """
    is_labeled = clean_prob >= threshold
    if not is_labeled.any():
        _warn(f"no sample reaches a clean probability of {threshold:g}: the {min_labeled} most likely ones are taken")
        is_labeled[torch.topk(clean_prob, min(min_labeled, len(clean_prob))).indices] = True
    elif is_labeled.all():
        _warn("every sample passes for clean: this epoch trains without unlabeled samples")
    return Division(is_labeled.nonzero().squeeze(1), (~is_labeled).nonzero().squeeze(1), clean_prob)


def warn_of_equal_losses(within: str = "") -> None:
    """Warn that no mixture could be fitted."""
    _warn(f"all losses are equal or nearly so{within}: no label differs from another, so all are kept")


def _warn(message: str) -> None:
    warnings.warn(message, DegenerateDivisionWarning, stacklevel=3)
