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
from dividemix.errors import DegenerateDivisionWarning

Mixture = Gaussians | Betas
_FITS: dict[str, Callable[[Tensor], Mixture]] = {"gaussian": fit_gaussians, "beta": fit_betas}

# Normalised losses closer together than this, half the root of the mixture's variance floor, are one heap: which of
# its samples two components would call clean is decided by rounding.
_MIN_SPAN = 0.01


@dataclass(frozen=True)
class Division:
    """Sample indices whose label is kept (X_e) and whose label is dropped (U_e), and every sample's w_i (N,).

    With w_i NaN for samples that are not among the n of the epoch. The rest tells whoever watches how it came about;
    training reads only the noise rate.
    """

    labeled: Tensor
    unlabeled: Tensor
    clean_prob: Tensor
    values: Tensor | None = None  # (n,) the normalised losses that were modelled
    mixtures: list[tuple[float, Mixture]] = field(default_factory=list)  # each with its share of all samples
    noise_rate: float = 0.0  # estimated share of wrong labels

    @property
    def divided(self) -> Tensor:
        """(N,): which samples were divided; in their order, those of `values`."""
        return ~self.clean_prob.isnan()

    def among(self, index: Tensor, num_samples: int) -> "Division":
        """The division of samples 0 to n - 1 as one of the samples `index` (n,), in ascending order, out of N."""
        clean_prob = self.clean_prob.new_full((num_samples,), torch.nan)
        clean_prob[index] = self.clean_prob
        return replace(self, labeled=index[self.labeled], unlabeled=index[self.unlabeled], clean_prob=clean_prob)


def normalise(losses: Tensor) -> Tensor:
    """Losses (N,) moved and scaled to [0, 1], in float64; zeros where all are equal."""
    losses = losses.double()
    low, high = losses.min(), losses.max()
    return torch.zeros_like(losses) if low == high else (losses - low) / (high - low)


def clean_probability(
    normalised: Tensor, labels: Tensor, *, division: str, mixture: str = "gaussian"
) -> tuple[Tensor, list[tuple[float, Mixture]]]:
    """W (N,): posterior of the small-loss component, from one mixture over all samples or one per given label.

    The mixtures come with it, each with the share of all samples that it was fitted to. Losses that are all but equal
    tell nothing against any label: the samples of such a group get probability 1, and no mixture.
    """
    clean_prob = torch.ones_like(normalised)
    mixtures: list[tuple[float, Mixture]] = []
    everyone = torch.ones_like(labels, dtype=torch.bool)
    for group in [everyone] if division == "global" else [labels == label for label in labels.unique()]:
        values = normalised[group]
        if values.max() - values.min() > _MIN_SPAN:
            fitted = _FITS[mixture](values)
            clean_prob[group] = fitted.low_prob(values)
            mixtures.append((len(values) / len(normalised), fitted))
    if not mixtures:
        where = "" if division == "global" else ", within each class"
        _warn(f"all losses are equal or nearly so{where}: no label can be told from another, so all are kept")
    return clean_prob, mixtures


def noise_rate(clean_prob: Tensor, predictions: Tensor, labels: Tensor) -> float:
    """Estimated share of wrong labels: the mean of 1 - w_i, taken as 0 where the net predicts (N,) the given label.

    A sample that is hard but agreed upon has a large loss, too, and is no noise.
    """
    return ((1 - clean_prob) * (predictions != labels)).mean().item()


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


def keep_all(num_samples: int) -> Division:
    """The division of data that is taken to be clean: every label is kept as it is."""
    return Division(torch.arange(num_samples), torch.arange(0), torch.ones(num_samples, dtype=torch.float64))


def _warn(message: str) -> None:
    warnings.warn(message, DegenerateDivisionWarning, stacklevel=3)
