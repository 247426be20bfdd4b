"""Co-divide against loops from Section 3.1 (2-means, EM, posterior), and its degenerate cases as they are defined."""

import warnings

import numpy as np
import oracles
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from dividemix.algorithm.beta_mixture import Betas
from dividemix.algorithm.divide import clean_probability, divide, normalise, warn_of_equal_losses
from dividemix.algorithm.settings import MixtureName
from dividemix.errors import DegenerateDivisionWarning

LOSSES = st.lists(st.floats(0, 50, width=32, allow_subnormal=False), min_size=1, max_size=40)
PROBS = st.lists(st.floats(0, 1), min_size=1, max_size=40)
MIXTURES: list[MixtureName] = ["gaussian", "beta"]


def _two_humps(seed: int, num_samples: int) -> Tensor:
    """Normalised losses of clean and noisy samples of three classes, which differ in difficulty."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, size=num_samples)
    noisy = rng.random(num_samples) < 0.4
    losses = rng.gamma(2 + labels, 0.1) + noisy * rng.normal(2 + 0.5 * labels, 0.4)
    return torch.tensor(oracles.min_max(losses.tolist()), dtype=torch.float64)


# normalise


@settings(deadline=None)
@given(LOSSES)
def test_normalise_is_min_max(losses: list[float]) -> None:
    normalised = normalise(torch.tensor(losses, dtype=torch.float32))
    assert normalised.dtype == torch.float64
    assert normalised.tolist() == pytest.approx(oracles.min_max(losses), abs=1e-12)


def test_normalise_spans_zero_to_one_exactly() -> None:
    normalised = normalise(torch.tensor([3.7, 0.1, 12.9]))
    assert (normalised.min().item(), normalised.max().item()) == (0.0, 1.0)


@pytest.mark.parametrize("losses", [[0.0], [2.5] * 7, [0.1] * 3])
def test_equal_losses_become_zeros(losses: list[float]) -> None:
    assert normalise(torch.tensor(losses)).tolist() == [0.0] * len(losses)


# clean_probability


@pytest.mark.parametrize("seed", range(10))
def test_clean_prob_is_the_low_posterior(seed: int) -> None:
    values = _two_humps(seed, 120)
    clean_prob, _ = clean_probability(values)
    assert clean_prob.dtype == torch.float64
    assert clean_prob.tolist() == pytest.approx(oracles.low_posterior(values.tolist()), abs=1e-6)


def test_clean_prob_follows_its_sample() -> None:
    values = _two_humps(2, 100)
    order = torch.randperm(100, generator=torch.Generator().manual_seed(1))
    straight, _ = clean_probability(values)
    shuffled, _ = clean_probability(values[order])
    torch.testing.assert_close(shuffled, straight[order], rtol=0, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_the_beta_mixture_takes_the_place_of_the_gaussian_one(seed: int) -> None:
    """Oracle: the EM of Arazo et al. as loops."""
    values = _two_humps(seed, 120)
    clean_prob, mixture = clean_probability(values, "beta")
    pair = oracles.beta_expectation_maximisation(values.tolist())
    assert clean_prob.tolist() == pytest.approx(oracles.beta_low_posterior(pair, values.tolist()), abs=1e-6)
    assert type(mixture) is Betas


@pytest.mark.parametrize("mixture", MIXTURES)
def test_the_clean_probability_is_that_of_the_mixture_which_comes_with_it(mixture: MixtureName) -> None:
    values = _two_humps(5, 90)
    clean_prob, fitted = clean_probability(values, mixture)
    assert fitted is not None
    assert torch.equal(fitted.low_prob(values), clean_prob)


@pytest.mark.parametrize("mixture", MIXTURES)
@pytest.mark.parametrize("num_samples", [1, 2, 9])
def test_equal_values_are_all_clean_without_a_mixture(num_samples: int, mixture: MixtureName) -> None:
    clean_prob, fitted = clean_probability(torch.zeros(num_samples, dtype=torch.float64), mixture)
    assert clean_prob.tolist() == [1.0] * num_samples
    assert clean_prob.dtype == torch.float64
    assert fitted is None


def test_values_in_one_cluster_are_clean_without_a_mixture() -> None:
    """Averaged over epochs, losses may be closer together than any mixture can separate."""
    values = 0.5 + 0.005 * torch.rand(20, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    clean_prob, mixture = clean_probability(values)
    assert clean_prob.tolist() == [1.0] * 20
    assert mixture is None


def test_whoever_finds_no_mixture_can_warn_of_it() -> None:
    with pytest.warns(DegenerateDivisionWarning, match="equal or nearly so"):
        warn_of_equal_losses()


# divide


@settings(deadline=None)
@given(PROBS, st.floats(0, 1), st.integers(1, 10))
def test_division_is_the_papers_two_sets(probs: list[float], threshold: float, min_labeled: int) -> None:
    """Oracle: Algorithm 1, lines 7 and 8: w >= tau against w < tau. Always a partition in ascending order."""
    clean_prob = torch.tensor(probs, dtype=torch.float64)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        division = divide(clean_prob, threshold, min_labeled)
    labeled, unlabeled = division.labeled.tolist(), division.unlabeled.tolist()
    assert division.labeled.dtype == division.unlabeled.dtype == torch.int64
    assert labeled == sorted(labeled)
    assert unlabeled == sorted(unlabeled)
    assert sorted(labeled + unlabeled) == list(range(len(probs)))
    assert torch.equal(division.clean_prob, clean_prob)

    expected = [i for i, w in enumerate(probs) if w >= threshold]
    if expected:
        assert labeled == expected
    else:
        assert len(labeled) == min(min_labeled, len(probs))
        assert all(probs[i] >= probs[j] for i in labeled for j in unlabeled)
    is_degenerate = not expected or len(expected) == len(probs)
    assert any(issubclass(w.category, DegenerateDivisionWarning) for w in caught) == is_degenerate


def test_the_threshold_itself_is_labeled() -> None:
    """The paper's >=, not the released code's >."""
    division = divide(torch.tensor([0.5, 0.49, 0.51], dtype=torch.float64), 0.5, 1)
    assert division.labeled.tolist() == [0, 2]
    assert division.unlabeled.tolist() == [1]


def test_nothing_clean_takes_the_cleanest() -> None:
    clean_prob = torch.tensor([0.1, 0.4, 0.0, 0.3, 0.2], dtype=torch.float64)
    with pytest.warns(DegenerateDivisionWarning):
        division = divide(clean_prob, 0.5, 2)
    assert division.labeled.tolist() == [1, 3]
    assert division.unlabeled.tolist() == [0, 2, 4]


def test_nothing_clean_among_fewer_samples_than_a_batch_takes_all() -> None:
    with pytest.warns(DegenerateDivisionWarning):
        division = divide(torch.tensor([0.1, 0.2], dtype=torch.float64), 0.5, 64)
    assert division.labeled.tolist() == [0, 1]
    assert division.unlabeled.tolist() == []


def test_everything_clean_leaves_unlabeled_empty_with_a_warning() -> None:
    with pytest.warns(DegenerateDivisionWarning):
        division = divide(torch.tensor([0.9, 0.6, 1.0], dtype=torch.float64), 0.5, 1)
    assert division.labeled.tolist() == [0, 1, 2]
    assert division.unlabeled.tolist() == []
    assert division.unlabeled.dtype == torch.int64


def test_a_division_cannot_be_changed() -> None:
    division = divide(torch.tensor([0.9, 0.1], dtype=torch.float64), 0.5, 1)
    with pytest.raises(AttributeError):
        division.labeled = division.unlabeled  # type: ignore[misc]
