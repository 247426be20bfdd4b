"""The noise from agreement. Oracles: labels and predictions that are drawn with known noise, and published formulas."""

import itertools
import math

import pytest
import torch
from torch import Tensor

from dividemix.methods.agreement import alike_labels, estimated_noise, noise_left, noise_rate, symmetric

N, C = 200_000, 10


def drawn(truth: Tensor, rate: float, *, pairs: bool, seed: int) -> Tensor:
    """Labels that are wrong at the rate: the next class, or any other one."""
    generator = torch.Generator().manual_seed(seed)
    wrong = torch.rand(N, generator=generator) < rate
    shift = torch.ones(N, dtype=torch.int64) if pairs else torch.randint(1, C, (N,), generator=generator)
    return torch.where(wrong, (truth + shift) % C, truth)


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("rate", [0.1, 0.2, 0.4])
def test_a_predictor_that_follows_the_noise_shows_its_rate(rate: float, pairs: bool) -> None:
    """Agreement is (1 - e)^2 + a e^2, and the noise left is the share of wrong labels where both agree."""
    truth = torch.arange(N) % C
    labels, predicted = drawn(truth, rate, pairs=pairs, seed=1), drawn(truth, rate, pairs=pairs, seed=2)
    alike = 1.0 if pairs else 1 / (C - 1)
    agrees = predicted == labels
    agreement = float(agrees.double().mean())
    assert agreement == pytest.approx((1 - rate) ** 2 + alike * rate**2, abs=0.005)
    assert noise_rate(agreement, alike) == pytest.approx(rate, abs=0.01)
    left = float((labels != truth)[agrees].double().mean())
    assert noise_left(rate, alike) == pytest.approx(left, abs=0.01)
    found = estimated_noise(predicted, labels, "asymmetric" if pairs else "symmetric").tolist()
    assert found == pytest.approx([rate, alike, float(not pairs)], abs=0.01)


@pytest.mark.parametrize("pairs", [False, True])
def test_the_pattern_is_seen_where_the_predictor_knows_the_truth(pairs: bool) -> None:
    truth = torch.arange(N) % C
    labels = drawn(truth, 0.4, pairs=pairs, seed=1)
    rate, alike, is_symmetric = estimated_noise(truth, labels, "estimated").tolist()
    assert alike == pytest.approx(1.0 if pairs else 1 / (C - 1), abs=0.005)
    assert is_symmetric == (not pairs)
    assert 0 < rate <= 0.5


def test_alike_labels_are_counted_over_all_pairs() -> None:
    generator = torch.Generator().manual_seed(0)
    predicted, labels = torch.randint(4, (2, 40), generator=generator)
    wrong = [(int(p), int(y)) for p, y in zip(predicted, labels, strict=True) if p != y]
    same_prediction = [(a, b) for a, b in itertools.combinations(wrong, 2) if a[0] == b[0]]
    same_label = [pair for pair in same_prediction if pair[0][1] == pair[1][1]]
    expected = len(same_label) / len(same_prediction)
    assert alike_labels(predicted, labels, 4) == pytest.approx(max(expected, 1 / 3))


def test_without_pairs_nothing_is_known_and_labels_count_as_alike() -> None:
    labels = torch.arange(5)
    assert alike_labels(labels, labels, 5) == 1
    assert estimated_noise(labels, labels, "estimated").tolist() == [0, 1, 0]


@pytest.mark.parametrize("agreement", [1.0, 0.8, 0.55])
def test_it_is_the_formula_of_symmetric_noise_and_that_of_pairs(agreement: float) -> None:
    expected = (C - 1) / C * (1 - math.sqrt((C * agreement - 1) / (C - 1)))
    assert noise_rate(agreement, symmetric(C)) == pytest.approx(expected)
    assert noise_rate(agreement, 1.0) == pytest.approx((1 - math.sqrt(2 * agreement - 1)) / 2)


def test_less_agreement_than_by_chance_is_the_highest_noise() -> None:
    assert noise_rate(0.0, symmetric(C)) == noise_rate(1 / C, symmetric(C)) == pytest.approx(0.9)
    assert noise_rate(0.0, 1.0) == 0.5
    assert symmetric(2) == symmetric(1) == 1


def test_all_of_the_noise_is_left_where_all_labels_are_wrong() -> None:
    assert noise_left(0.0, 0.5) == 0
    assert noise_left(1.0, 0.5) == 1
