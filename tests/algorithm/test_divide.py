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
from dividemix.algorithm.divide import clean_probability, divide, noise_rate, normalise
from dividemix.errors import DegenerateDivisionWarning

LOSSES = st.lists(st.floats(0, 50, width=32, allow_subnormal=False), min_size=1, max_size=40)
PROBS = st.lists(st.floats(0, 1), min_size=1, max_size=40)


def _two_humps(seed: int, num_samples: int, num_classes: int) -> tuple[Tensor, Tensor]:
    """Normalised losses of clean and noisy samples, and labels; the classes differ in difficulty."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, num_classes, size=num_samples)
    noisy = rng.random(num_samples) < 0.4
    losses = rng.gamma(2 + labels, 0.1) + noisy * rng.normal(2 + 0.5 * labels, 0.4)
    return torch.tensor(oracles.min_max(losses.tolist()), dtype=torch.float64), torch.from_numpy(labels)


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
def test_global_clean_prob_is_the_low_posterior(seed: int) -> None:
    values, labels = _two_humps(seed, 120, 3)
    clean_prob, _ = clean_probability(values, labels, division="global")
    assert clean_prob.dtype == torch.float64
    assert clean_prob.tolist() == pytest.approx(oracles.low_posterior(values.tolist()), abs=1e-6)


@pytest.mark.parametrize("seed", range(10))
def test_per_class_clean_prob_is_the_low_posterior_within_the_class(seed: int) -> None:
    values, labels = _two_humps(seed, 150, 3)
    clean_prob, _ = clean_probability(values, labels, division="per_class")
    expected = oracles.low_posterior_per_class(values.tolist(), labels.tolist())
    assert clean_prob.dtype == torch.float64
    assert clean_prob.tolist() == pytest.approx(expected, abs=1e-6)


def test_global_division_ignores_labels_and_per_class_does_not() -> None:
    values, labels = _two_humps(1, 150, 3)
    first, _ = clean_probability(values, labels, division="global")
    assert torch.equal(first, clean_probability(values, labels.flip(0), division="global")[0])
    assert not torch.allclose(first, clean_probability(values, labels, division="per_class")[0], atol=1e-3)


def test_clean_prob_follows_its_sample() -> None:
    values, labels = _two_humps(2, 100, 4)
    order = torch.randperm(100, generator=torch.Generator().manual_seed(1))
    for division in ("global", "per_class"):
        straight, _ = clean_probability(values, labels, division=division)
        shuffled, _ = clean_probability(values[order], labels[order], division=division)
        torch.testing.assert_close(shuffled, straight[order], rtol=0, atol=1e-9)


def test_classes_need_be_neither_contiguous_nor_all_present() -> None:
    values, labels = _two_humps(3, 100, 2)
    renamed = torch.where(labels == 0, 7, 90)
    first, _ = clean_probability(values, labels, division="per_class")
    torch.testing.assert_close(clean_probability(values, renamed, division="per_class")[0], first)


def test_a_class_of_one_or_of_equal_values_is_clean_without_a_warning() -> None:
    values, labels = _two_humps(4, 60, 2)
    values = torch.cat([values, torch.tensor([0.9, 0.8, 0.8, 0.8], dtype=torch.float64)])
    labels = torch.cat([labels, torch.tensor([2, 3, 3, 3])])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clean_prob, _ = clean_probability(values, labels, division="per_class")
    assert clean_prob[60:].tolist() == [1.0] * 4
    expected = oracles.low_posterior_per_class(values.tolist(), labels.tolist())
    assert clean_prob.tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("division", ["global", "per_class"])
@pytest.mark.parametrize("num_samples", [1, 2, 9])
def test_equal_values_are_all_clean_with_a_warning(num_samples: int, division: str) -> None:
    values, labels = torch.zeros(num_samples, dtype=torch.float64), torch.arange(num_samples) % 2
    with pytest.warns(DegenerateDivisionWarning):
        clean_prob, _ = clean_probability(values, labels, division=division)
    assert clean_prob.tolist() == [1.0] * num_samples
    assert clean_prob.dtype == torch.float64


@pytest.mark.parametrize("seed", range(5))
def test_the_beta_mixture_takes_the_gaussian_ones_place(seed: int) -> None:
    """Oracle: Arazo et al.'s EM as loops, over all samples and over each class."""
    values, labels = _two_humps(seed, 120, 3)
    clean_prob, mixtures = clean_probability(values, labels, division="global", mixture="beta")
    pair = oracles.beta_expectation_maximisation(values.tolist())
    assert clean_prob.tolist() == pytest.approx(oracles.beta_low_posterior(pair, values.tolist()), abs=1e-6)
    assert [type(fitted) for _, fitted in mixtures] == [Betas]
    clean_prob, _ = clean_probability(values, labels, division="per_class", mixture="beta")
    for c in range(3):
        members = values[labels == c].tolist()
        pair = oracles.beta_expectation_maximisation(members)
        expected = oracles.beta_low_posterior(pair, members)
        assert clean_prob[labels == c].tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("mixture", ["gaussian", "beta"])
def test_the_mixtures_come_with_their_shares(mixture: str) -> None:
    """The clean probability is theirs; a class without a mixture (the last: equal losses) is in no share."""
    values, labels = _two_humps(5, 90, 3)
    values = torch.cat([values, torch.full((10,), 0.3, dtype=torch.float64)])
    labels = torch.cat([labels, torch.full((10,), 3)])
    clean_prob, [(share, fitted)] = clean_probability(values, labels, division="global", mixture=mixture)
    assert share == 1.0
    assert torch.equal(fitted.low_prob(values), clean_prob)

    clean_prob, mixtures = clean_probability(values, labels, division="per_class", mixture=mixture)
    assert [share for share, _ in mixtures] == [labels.eq(c).sum().item() / 100 for c in range(3)]
    for c, (_, fitted) in enumerate(mixtures):
        assert torch.equal(fitted.low_prob(values[labels == c]), clean_prob[labels == c])


def test_mixtures_drawn_together_cover_the_samples_that_have_one() -> None:
    values, labels = _two_humps(5, 90, 3)
    values = torch.cat([values, torch.full((10,), 0.3, dtype=torch.float64)])
    labels = torch.cat([labels, torch.full((10,), 3)])
    _, mixtures = clean_probability(values, labels, division="per_class")
    grid = torch.linspace(-1, 2, 3001, dtype=torch.float64)
    drawn = sum(share * fitted.densities(grid).sum(dim=0) for share, fitted in mixtures)
    assert float(torch.trapezoid(drawn, grid)) == pytest.approx(0.9, abs=1e-6)


@pytest.mark.parametrize("mixture", ["gaussian", "beta"])
@pytest.mark.parametrize("division", ["global", "per_class"])
def test_equal_values_have_no_mixture(division: str, mixture: str) -> None:
    with pytest.warns(DegenerateDivisionWarning):
        _, mixtures = clean_probability(torch.zeros(6), torch.arange(6) % 2, division=division, mixture=mixture)
    assert mixtures == []


def test_a_heap_is_clean_without_a_mixture() -> None:
    """Averaged over epochs, losses may lie closer together than any mixture can tell."""
    values = 0.5 + 0.005 * torch.rand(20, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    with pytest.warns(DegenerateDivisionWarning, match="nearly"):
        clean_prob, mixtures = clean_probability(values, torch.zeros(20, dtype=torch.int64), division="global")
    assert clean_prob.tolist() == [1.0] * 20
    assert mixtures == []


# noise_rate


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40))
def test_noise_rate_is_the_unclean_share_that_is_not_agreed_upon(rows: list[tuple[float, int, int]]) -> None:
    clean_prob, predictions, labels = zip(*rows, strict=True)
    found = noise_rate(torch.tensor(clean_prob, dtype=torch.float64), torch.tensor(predictions), torch.tensor(labels))
    assert isinstance(found, float)
    assert found == pytest.approx(oracles.noise_rate(clean_prob, predictions, labels), abs=1e-12)


def test_hard_but_agreed_samples_are_no_noise() -> None:
    labels = torch.tensor([0, 1, 2, 0])
    assert noise_rate(torch.zeros(4), labels, labels) == 0.0
    assert noise_rate(torch.zeros(4), (labels + 1) % 3, labels) == 1.0
    assert noise_rate(torch.ones(4), (labels + 1) % 3, labels) == 0.0


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
