"""Two-component Gaussian mixtures on the line, fitted by expectation-maximisation.

An EM iteration needs six sums over the samples (for each component the responsibilities, times the value, times its
square). Many processes could therefore fit one mixture, each with a part of the data.

Shapes: N values; every parameter is a (2,) float64 tensor, component 0 having the smaller mean.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

_LLOYD_ITERS = 100
# Keeps an empty component from dividing by zero. scikit-learn adds the same.
_HAIR = 10 * torch.finfo(torch.float64).eps


@dataclass(frozen=True)
class Gaussians:
    """weights[0] N(means[0], variances[0]) + weights[1] N(means[1], variances[1]), with means[0] <= means[1]."""

    weights: Tensor
    means: Tensor
    variances: Tensor
    num_iters: int
    converged: bool

    def low_prob(self, values: Tensor) -> Tensor:
        """Posterior probability (N,) of component 0, the one with the smaller mean: the paper's p(g | l_i)."""
        values = values.double()
        return torch.sigmoid(_log_odds(self, values, values * values))

    def densities(self, values: Tensor) -> Tensor:
        """Weight x density (2, N) of each component at the values."""
        values = values.double()
        constant, linear, quadratic = (row[:, None] for row in _coefficients(self))
        return torch.exp(constant + linear * values + quadratic * values * values)


def fit_gaussians(
    values: Tensor, *, max_iters: int = 10, tolerance: float = 1e-2, variance_floor: float = 5e-4
) -> Gaussians:
    """The mixture that EM finds for values (N,) in [0, 1] from a two-means start, within the released code's limits.

    The fit has converged once the mean log-likelihood changes by less than `tolerance`. `variance_floor` is added to
    each variance, so that no component collapses onto a point. Raises ValueError if all values are equal.
    """
    values = values.double()
    squares = values * values
    mixture = two_means_start(values, variance_floor)
    previous = -math.inf
    converged = False
    num_iters = 0
    while num_iters < max_iters and not converged:
        # E-step. The log-likelihood of a sample is log p1 + log(1 + p0 / p1).
        log_odds = _log_odds(mixture, values, squares)
        low = torch.sigmoid(log_odds)
        mean_log_likelihood = (F.softplus(log_odds).mean() + _mean_log_density(mixture, values, squares)).item()
        # M-step.
        mixture = _maximise(values, squares, low, variance_floor)
        num_iters += 1
        converged = abs(mean_log_likelihood - previous) < tolerance
        previous = mean_log_likelihood
    order = torch.argsort(mixture.means, stable=True)
    return Gaussians(mixture.weights[order], mixture.means[order], mixture.variances[order], num_iters, converged)


def two_means_start(values: Tensor, variance_floor: float = 5e-4) -> Gaussians:
    """The mixture of Lloyd's two clusters, from the smallest and the largest value; a ValueError if they are equal."""
    values = values.double()
    centres = torch.stack([values.min(), values.max()])
    if centres[0] == centres[1]:
        raise ValueError("all values are equal: a mixture of two components has nothing to tell apart")
    total, num_values = values.sum(), len(values)
    for _ in range(_LLOYD_ITERS):
        low = (values <= centres.mean()).double()
        num_low, low_sum = low.sum(), low @ values
        moved = torch.stack([low_sum / num_low, (total - low_sum) / (num_values - num_low)])
        if torch.equal(moved, centres):
            break
        centres = moved
    return _maximise(values, values * values, low, variance_floor)


def moments(values: Tensor, squares: Tensor, low: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Weights, means and variances (2,) of values whose responsibilities are low and 1 - low, from the six sums."""
    num_values = len(values)
    low_sums = torch.stack([low.sum(), low @ values, low @ squares])
    all_sums = torch.stack([low_sums.new_tensor(num_values), values.sum(), squares.sum()])
    counts, sums, square_sums = torch.stack([low_sums, all_sums - low_sums], dim=1)
    counts = counts + _HAIR
    means = sums / counts
    return counts / counts.sum(), means, (square_sums / counts - means * means).clamp(min=0)


def _maximise(values: Tensor, squares: Tensor, low: Tensor, variance_floor: float) -> Gaussians:
    """M-step: the mixture that has the moments of the responsibilities low and 1 - low."""
    weights, means, variances = moments(values, squares, low)
    return Gaussians(weights, means, variances + variance_floor, 0, False)


def _log_odds(mixture: Gaussians, values: Tensor, squares: Tensor) -> Tensor:
    """log(weight 0 x density 0) - log(weight 1 x density 1) of each value (N,): a quadratic in the value."""
    constant, linear, quadratic = (row[0] - row[1] for row in _coefficients(mixture))
    return torch.addcmul(torch.addcmul(constant, linear, values), quadratic, squares)


def _mean_log_density(mixture: Gaussians, values: Tensor, squares: Tensor) -> Tensor:
    """Mean over the values of log(weight 1 x density 1), from their first two moments."""
    constant, linear, quadratic = (row[1] for row in _coefficients(mixture))
    return constant + linear * values.mean() + quadratic * squares.mean()


def _coefficients(mixture: Gaussians) -> tuple[Tensor, Tensor, Tensor]:
    """Each component's log(weight x density) as constant + linear x + quadratic x^2, three tensors (2,)."""
    precision = 1 / mixture.variances
    log_norm = 0.5 * (torch.log(precision) - math.log(2 * math.pi))
    constant = torch.log(mixture.weights) + log_norm - 0.5 * mixture.means**2 * precision
    return constant, mixture.means * precision, -0.5 * precision
