"""The two-component mixture: fit and posteriors of many losses, against scikit-learn's."""

import warnings
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from benchmarks.contract import Options, Outcome, Row
from benchmarks.plain import mixture_posterior
from benchmarks.timing import Work, apart, medians, readable, timed
from dividemix.algorithm.divide import normalise
from dividemix.algorithm.mixture import fit_gaussians, two_means_start
from dividemix.engine.memory import keep_freed_memory


def run(options: Options) -> Outcome:
    """50,000 losses, an epoch of CIFAR, and 1,000,000, one of Clothing1M."""
    rows: list[Row] = []
    figures: dict[str, float] = {}
    for name, num_losses, repeats, goal in (("50k", 50_000, 9, "20 ms"), ("1m", 1_000_000, 3, "0.4 s")):
        losses = _losses(num_losses)
        plain, ours = _seconds(num_losses, repeats=1 if options.quick else repeats)
        difference = _difference(losses)
        rows.append(
            Row(
                f"{num_losses:,} losses; posteriors differ by at most {difference:.0e}",
                readable(plain),
                readable(ours),
                f"{plain / ours:.1f} x",
                f">= 10 x, < {goal}",
            )
        )
        figures |= {
            f"mixture_{name}_plain_s": plain,
            f"mixture_{name}_s": ours,
            f"mixture_{name}_ms": 1e3 * ours,
            f"mixture_{name}_ratio": plain / ours,
            f"mixture_{name}_difference": difference,
        }
    return Outcome(rows, figures)


def _losses(num_losses: int) -> torch.Tensor:
    """Normalised losses as after warm-up: right labels low and skew, a heap of wrong ones above them."""
    rng = np.random.default_rng(1)
    num_wrong = num_losses * 45 // 100
    clean = rng.gamma(1.5, 0.3, num_losses - num_wrong)
    wrong = np.abs(rng.normal(2.8, 0.7, num_wrong))
    return normalise(torch.from_numpy(rng.permutation(np.concatenate([clean, wrong]))))


def _seconds(num_losses: int, *, repeats: int) -> tuple[float, float]:
    """Each side in a process of its own: the threads that scikit-learn leaves spinning would slow ours tenfold."""
    seconds = medians(
        {"plain": apart(partial(_plain, num_losses)), "ours": apart(partial(_ours, num_losses))},
        repeats=repeats,
    )
    return seconds["plain"], seconds["ours"]


def _plain(num_losses: int) -> Work:
    column = _losses(num_losses).numpy().reshape(-1, 1)
    return timed(lambda: mixture_posterior(column))


def _ours(num_losses: int) -> Work:
    keep_freed_memory()  # as in a run
    losses = _losses(num_losses)
    return timed(lambda: fit_gaussians(losses).low_prob(losses))


def _difference(losses: torch.Tensor) -> float:
    """The largest difference between the posteriors when both start from the same mixture."""
    start = two_means_start(losses)
    column: NDArray[np.float64] = losses.numpy().reshape(-1, 1)
    model = GaussianMixture(
        n_components=2,
        max_iter=10,
        tol=1e-2,
        reg_covar=5e-4,
        weights_init=start.weights.numpy(),
        means_init=start.means.numpy().reshape(-1, 1),
        precisions_init=1 / start.variances.numpy().reshape(-1, 1, 1),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        theirs = model.fit(column).predict_proba(column)[:, model.means_.argmin()]
    return float(np.abs(theirs - fit_gaussians(losses).low_prob(losses).numpy()).max())
