"""The estimate of Dawid and Skene. Oracle: expectation and maximisation as slow loops; invariances; invented crowds."""

import math
from typing import Any

import numpy as np
import pytest

from dividemix.data.dawid_skene import dawid_skene


def slow(votes: list[list[int]], num_classes: int) -> tuple[list[list[float]], list[list[list[float]]]]:
    """The definition, a number at a time; five votes of an average annotator are added to each row of a matrix."""
    num_annotators, classes = len(votes[0]), range(num_classes)
    probs = []
    for row in votes:
        given = [vote for vote in row if vote >= 0]
        probs.append([given.count(c) / len(given) if given else 1 / num_classes for c in classes])
    voted = [any(vote >= 0 for vote in row) for row in votes]
    matrices: list[list[list[float]]] = []
    for _ in range(200):
        counts = [[[0.0] * num_classes for _ in classes] for _ in range(num_annotators)]
        for row, prob in zip(votes, probs, strict=True):
            for a, vote in enumerate(row):
                for c in classes:
                    if vote >= 0:
                        counts[a][c][vote] += prob[c]
        right = [prob[v] for row, prob in zip(votes, probs, strict=True) for v in row if v >= 0]
        average = (sum(right) + 1) / (len(right) + 2)
        added = [[5 * (average if v == c else (1 - average) / (num_classes - 1)) for v in classes] for c in classes]
        matrices = [
            [[(one[c][v] + added[c][v]) / (sum(one[c]) + 5) for v in classes] for c in classes] for one in counts
        ]
        mass = [sum(prob[c] for prob, known in zip(probs, voted, strict=True) if known) + 0.01 for c in classes]
        after = []
        for row in votes:
            score = [mass[c] / sum(mass) for c in classes]
            for a, vote in enumerate(row):
                for c in classes:
                    score[c] *= matrices[a][c][vote] if vote >= 0 else 1
            after.append([value / sum(score) for value in score])
        change = max(abs(x - y) for new, old in zip(after, probs, strict=True) for x, y in zip(new, old, strict=True))
        probs = after
        if change < 1e-7:
            break
    return probs, matrices


def crowd(
    accuracies: list[float], num_samples: int, num_classes: int, seed: int, missing: float = 0.3
) -> tuple[Any, Any]:
    """True labels, and votes that are right as often as each annotator is accurate."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(num_classes, size=num_samples)
    wrong = (truth[:, None] + rng.integers(1, num_classes, (num_samples, len(accuracies)))) % num_classes
    votes = np.where(rng.random(wrong.shape) < accuracies, truth[:, None], wrong)
    return truth, np.where(rng.random(wrong.shape) < missing, -1, votes)


@pytest.mark.parametrize(("num_classes", "accuracies"), [(2, [0.9, 0.6, 0.7]), (4, [0.8, 0.5]), (3, [1.0] * 4)])
def test_it_is_what_slow_loops_compute(num_classes: int, accuracies: list[float]) -> None:
    _, votes = crowd(accuracies, 25, num_classes, seed=1)
    estimate = dawid_skene(votes, num_classes)
    probs, matrices = slow(votes.tolist(), num_classes)
    np.testing.assert_allclose(estimate.probs, probs, atol=1e-5)
    np.testing.assert_allclose(estimate.confusion, matrices, atol=1e-5)
    np.testing.assert_allclose(estimate.probs.sum(axis=1), 1)
    np.testing.assert_allclose(estimate.confusion.sum(axis=2), 1)
    assert math.isclose(estimate.prior.sum(), 1)


def test_one_who_is_reliable_outvotes_two_who_guess() -> None:
    """Where the majority is wrong: that is what the estimate is for."""
    truth, votes = crowd([0.97, 0.97, 0.35, 0.35, 0.35], 600, 3, seed=3, missing=0.0)
    majority = np.array([np.bincount(row, minlength=3).argmax() for row in votes])
    estimated = dawid_skene(votes, 3).probs.argmax(axis=1)
    assert (estimated == truth).mean() > 0.97
    assert (majority == truth).mean() < 0.92


def test_confusion_is_that_of_the_annotators() -> None:
    _, votes = crowd([0.9, 0.8, 0.7, 0.6], 3000, 3, seed=4)
    found = dawid_skene(votes, 3).confusion.diagonal(axis1=1, axis2=2).mean(axis=1)
    np.testing.assert_allclose(found, [0.9, 0.8, 0.7, 0.6], atol=0.05)


def test_the_order_of_samples_annotators_and_classes_does_not_matter() -> None:
    _, votes = crowd([0.9, 0.6, 0.7], 40, 3, seed=5)
    probs = dawid_skene(votes, 3).probs
    rng = np.random.default_rng(0)
    samples, people, classes = rng.permutation(40), rng.permutation(3), rng.permutation(3)
    moved = np.where(votes < 0, -1, classes[votes])[samples][:, people]
    np.testing.assert_allclose(dawid_skene(moved, 3).probs[:, classes], probs[samples], atol=1e-5)


def test_a_class_with_a_single_odd_vote_does_not_explain_other_votes() -> None:
    """Without the votes of an average annotator, the last sample is class 2 with certainty."""
    votes = np.array([[0, 0, 0], [1, 1, 1]] * 5 + [[0, 1, 2]])
    probs = dawid_skene(votes, 3).probs[-1]
    assert probs.argmax() != 2
    assert probs.max() < 0.9


def test_no_votes_at_all() -> None:
    estimate = dawid_skene(np.full((3, 2), -1), 2)
    np.testing.assert_allclose(estimate.probs, 0.5)
    assert np.isfinite(estimate.confusion).all()
