"""Noise by anchors. Oracles: a noise matrix that is known, and shares by Bayes counted in loops."""

import pytest
import torch
from torch import Tensor

from dividemix.methods.anchors import anchor_matrix, class_shares, mistaken_for, noise_by_label

T = torch.tensor([[0.7, 0.2, 0.1], [0.0, 1.0, 0.0], [0.3, 0.3, 0.4]])
SHARES = torch.tensor([0.5, 0.3, 0.2])


def noisy_predictions() -> Tensor:
    """Of 1,000 samples, two thirds surely of their class: what a perfect net predicts of given labels."""
    generator = torch.Generator().manual_seed(0)
    classes = torch.multinomial(SHARES, 1000, replacement=True, generator=generator)
    sureness = torch.rand(1000, 1, generator=generator).clamp(min=2 / 3) * 3 - 2  # 0 for two thirds, up to 1
    sure = torch.nn.functional.one_hot(classes, 3).float()
    return torch.lerp(SHARES.expand(1000, 3), sure, 1 - sureness) @ T


def test_the_matrix_of_anchors_is_the_matrix_that_made_the_predictions() -> None:
    torch.testing.assert_close(anchor_matrix(noisy_predictions()), T, rtol=0, atol=0.02)


def test_the_shares_of_the_true_classes_are_found_behind_the_noise() -> None:
    probs = noisy_predictions()
    torch.testing.assert_close(class_shares(probs, T), SHARES, rtol=0, atol=0.05)


def test_noise_by_label_is_bayes_in_loops() -> None:
    noise = noise_by_label(T, SHARES)
    for j in range(3):
        given = [SHARES[c].item() * T[c, j].item() for c in range(3)]
        assert noise[j].item() == pytest.approx(1 - given[j] / sum(given), abs=1e-6)


def test_mistakes_are_compared_with_the_most_frequent_one_of_the_same_label() -> None:
    expected = torch.tensor([[1, 0.2 / 0.3, 1], [0, 1, 0], [1, 1, 1]])
    torch.testing.assert_close(mistaken_for(T), expected)
    assert torch.equal(mistaken_for(torch.eye(3)), torch.eye(3))


def test_right_labels_have_no_noise() -> None:
    probs = torch.eye(4).repeat(30, 1)
    matrix = anchor_matrix(probs)
    assert torch.equal(matrix, torch.eye(4))
    assert noise_by_label(matrix, class_shares(probs, matrix)).tolist() == [0, 0, 0, 0]


def test_few_samples_and_a_class_without_any_give_finite_numbers() -> None:
    probs = torch.tensor([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0]])
    matrix = anchor_matrix(probs)
    assert noise_by_label(matrix, class_shares(probs, matrix)).isfinite().all()
