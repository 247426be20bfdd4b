"""Two-component Beta mixtures on (0, 1), as Arazo et al. (2019) fit them: EM with the method of moments.

The paper compares its Gaussian mixture with this one. The likelihood's maximum has no closed form, so the M-step takes
the Beta distributions with the weighted means and variances, from the same six sums as the Gaussian mixture.

Shapes: N values; every parameter is a (2,) float64 tensor, component 0 having the smaller mean.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from dividemix.algorithm.mixture import moments

# A Beta density may be infinite or zero at 0 and at 1: values are kept this far away from both.
_MARGIN = 1e-4
# The narrowest component, so that none collapses onto a point. Far below _MARGIN (1 - _MARGIN), the smallest
# mean (1 - mean), which a Beta's variance cannot reach.
_VARIANCE_FLOOR = _MARGIN**2


@dataclass(frozen=True)
class Betas:
    """weights[0] Beta(alphas[0], betas[0]) + weights[1] Beta(alphas[1], betas[1]), the first with the smaller mean."""

    weights: Tensor
    alphas: Tensor
    betas: Tensor

    def low_prob(self, values: Tensor) -> Tensor:
        """Posterior probability (N,) of component 0, which never rises as the value grows.

        If one component is both taller and narrower, the ratio of the densities turns once. Beyond that point the
        broad component would win back the largest losses, or the smallest: the posterior stays constant instead.
        """
        values = _inside(values)
        alpha, beta = self.alphas[0] - self.alphas[1], self.betas[0] - self.betas[1]
        if alpha < 0 and beta < 0:  # falls, then rises
            values = values.clamp(max=alpha / (alpha + beta))
        elif alpha > 0 and beta > 0:  # rises, then falls
            values = values.clamp(min=alpha / (alpha + beta))
        return torch.sigmoid(_log_odds(self, values.log(), torch.log1p(-values)))

    def densities(self, values: Tensor) -> Tensor:
        """Weight x density (2, N) of each component at the values, which are moved inside (0, 1) as for the fit."""
        values = _inside(values)
        constant, log_power, log_rest_power = (row[:, None] for row in _coefficients(self))
        return torch.exp(constant + log_power * values.log() + log_rest_power * torch.log1p(-values))


def fit_betas(values: Tensor, *, num_iters: int = 10) -> Betas:
    """The mixture after num_iters iterations of EM on values (N,) in [0, 1], starting from Beta(1, 2) and Beta(2, 1).

    Raises ValueError if all values are equal.
    """
    if values.min() == values.max():
        raise ValueError("all values are equal: a mixture of two components has nothing to tell apart")
    values = _inside(values)
    squares, logs, log_rests = values * values, values.log(), torch.log1p(-values)
    weights, alphas, betas = torch.tensor([[0.5, 0.5], [1.0, 2.0], [2.0, 1.0]]).to(values)
    mixture = Betas(weights, alphas, betas)
    for _ in range(num_iters):
        low = torch.sigmoid(_log_odds(mixture, logs, log_rests))  # E-step
        mixture = _with_moments(*moments(values, squares, low))  # M-step
    order = torch.argsort(mixture.alphas / (mixture.alphas + mixture.betas), stable=True)
    return Betas(mixture.weights[order], mixture.alphas[order], mixture.betas[order])


def _with_moments(weights: Tensor, means: Tensor, variances: Tensor) -> Betas:
    """The Beta distributions with these means and variances, each (2,).

    Both are first clamped to what values inside the margins can have: rounding may give an almost empty component
    any moments.
    """
    means = means.clamp(_MARGIN, 1 - _MARGIN)
    spread = means * (1 - means)
    variances = torch.minimum(variances, spread - _MARGIN * (1 - _MARGIN)).clamp(min=_VARIANCE_FLOOR)
    total = spread / variances - 1  # alpha + beta
    return Betas(weights, means * total, (1 - means) * total)


def _log_odds(mixture: Betas, logs: Tensor, log_rests: Tensor) -> Tensor:
    """log(weight 0 x density 0) - log(weight 1 x density 1) (N,) from log x and log(1 - x) of each value x."""
    constant, log_power, log_rest_power = (row[0] - row[1] for row in _coefficients(mixture))
    return torch.addcmul(torch.addcmul(constant, log_power, logs), log_rest_power, log_rests)


def _coefficients(mixture: Betas) -> tuple[Tensor, Tensor, Tensor]:
    """Each component's log(weight x density) as constant + a log x + b log(1 - x), three tensors (2,)."""
    alphas, betas = mixture.alphas, mixture.betas
    log_norm = torch.lgamma(alphas + betas) - torch.lgamma(alphas) - torch.lgamma(betas)
    return torch.log(mixture.weights) + log_norm, alphas - 1, betas - 1


def _inside(values: Tensor) -> Tensor:
    """Values in float64, moved to [margin, 1 - margin]."""
    return values.double().clamp(_MARGIN, 1 - _MARGIN)
