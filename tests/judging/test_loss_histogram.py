"""The histogram of a division. Oracles: numpy's histogram, and a density integrated by counting its samples."""

from typing import Literal

import numpy as np
import torch

from dividemix.algorithm.divide import Division
from dividemix.judging.loss_histogram import loss_histogram
from dividemix.methods.keep_labels import opinion
from dividemix.methods.robust import RobustSettings


def division(values: torch.Tensor, labels: torch.Tensor, kind: Literal["global", "per_class"]) -> Division:
    w, mixtures = opinion(values, labels, None, RobustSettings(division=kind))
    index = torch.arange(len(values))
    return Division(index[w >= 0.5], index[w < 0.5], w, values=values, mixtures=mixtures)


def two_heaps(num_samples: int = 4000) -> tuple[torch.Tensor, torch.Tensor]:
    """Losses around 0.2 and 0.8, and a label for each."""
    generator = torch.Generator().manual_seed(0)
    centres = torch.where(torch.rand(num_samples, generator=generator) < 0.7, 0.2, 0.8).double()
    values = centres + 0.05 * torch.randn(num_samples, generator=generator, dtype=torch.float64)
    return values.clamp(0, 1), torch.randint(3, (num_samples,), generator=generator)


def test_counts_are_those_of_the_values() -> None:
    values, labels = two_heaps()
    is_wrong = (values > 0.5).numpy()
    histogram = loss_histogram(division(values, labels, "global"), is_wrong)
    span = (histogram["low"], histogram["high"])
    assert span == (values.min().item(), values.max().item())
    np.testing.assert_array_equal(histogram["counts"], np.histogram(values, 50, span)[0])
    np.testing.assert_array_equal(histogram["wrong_counts"], np.histogram(values[is_wrong], 50, span)[0])


def test_the_curves_of_one_mixture_or_many_lie_over_the_counts() -> None:
    values, labels = two_heaps()
    kinds: tuple[Literal["global", "per_class"], ...] = ("global", "per_class")
    for kind in kinds:
        histogram = loss_histogram(division(values, labels, kind), None)
        clean, wrong = np.array(histogram["clean_curve"]), np.array(histogram["wrong_curve"])
        assert abs(clean.sum() + wrong.sum() - len(values)) < 0.02 * len(values)
        assert abs(clean.sum() / len(values) - 0.7) < 0.03
        assert np.abs(clean + wrong - histogram["counts"]).mean() < 0.2 * np.mean(histogram["counts"])
        assert "wrong_counts" not in histogram


def test_equal_losses_make_one_bar_and_no_curve() -> None:
    values = torch.full((10,), 0.3, dtype=torch.float64)
    flat = Division(torch.arange(10), torch.arange(0), torch.ones(10), values=values)
    histogram = loss_histogram(flat, None)
    assert max(histogram["counts"]) == 10
    assert set(histogram["clean_curve"]) == {0.0}
