"""The history of predictions. Oracles: loops over samples and steps; scikit-learn's mixture; labels that are known."""

import math

import numpy as np
import pytest
import torch
from sklearn.mixture import GaussianMixture
from torch import Tensor

from dividemix.methods.prediction_history import clean_prob_by_class, predictions, refined, remember


def random_probs(num_rows: int, num_classes: int = 3, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(num_rows, num_classes, generator=generator).softmax(dim=1)


def test_the_history_is_the_running_mean_of_each_sample_by_a_loop() -> None:
    history, expected = torch.zeros(5, 3), dict[int, list[float]]()
    for step, index in enumerate([[0, 1, 2], [2, 3, 0], [0, 2, 2], [3, 3, 3]]):
        probs = random_probs(3, seed=step)
        remember(history, torch.tensor(index), probs, 0.7)
        for i in set(index):
            seen = [probs[row].tolist() for row in range(3) if index[row] == i]
            mean = [math.fsum(column) / len(seen) for column in zip(*seen, strict=True)]
            before = expected.get(i)
            pairs = zip(before, mean, strict=True) if before else ()
            expected[i] = [0.7 * old + 0.3 * new for old, new in pairs] if before else mean
    for i in range(4):
        assert history[i].tolist() == pytest.approx(expected[i], abs=1e-6)
    assert not history[4].any()  # never seen


def test_a_sample_without_a_history_has_its_given_label() -> None:
    history = random_probs(4)
    history[2] = 0
    probs = predictions(history, torch.tensor([0, 1, 2, 0]))
    assert probs[2].tolist() == [0, 0, 1]
    assert torch.equal(probs[[0, 1, 3]], history[[0, 1, 3]])


def test_labels_are_compared_within_their_class_as_scikit_learn_does() -> None:
    """Class 1 is hard: all its losses are larger than those of class 0, the wrong labels of class 0 among them."""
    rng = np.random.default_rng(0)
    right, wrong = rng.normal(0.9, 0.02, 60), rng.normal(0.5, 0.03, 20)
    hard_right, hard_wrong = rng.normal(0.3, 0.02, 60), rng.normal(0.05, 0.005, 20)
    given = torch.tensor(np.concatenate([right, wrong, hard_right, hard_wrong]))
    labels = torch.tensor([0] * 80 + [1] * 80)
    probs = torch.zeros(160, 2, dtype=torch.float64)
    probs[torch.arange(160), labels], probs[torch.arange(160), 1 - labels] = given, 1 - given
    clean_prob = clean_prob_by_class(probs, labels)
    for label in (0, 1):
        losses = -np.log(given[labels == label].numpy())
        values = ((losses - losses.min()) / (losses.max() - losses.min()))[:, None]
        fitted = GaussianMixture(2, reg_covar=5e-4, tol=1e-6, max_iter=500, random_state=0).fit(values)
        expected = fitted.predict_proba(values)[:, fitted.means_.argmin()]
        np.testing.assert_allclose(clean_prob[labels == label].numpy(), expected, atol=0.02)
    is_wrong = torch.tensor(([False] * 60 + [True] * 20) * 2)
    assert torch.equal(clean_prob < 0.5, is_wrong)


def test_every_label_of_a_class_with_few_samples_is_kept() -> None:
    labels = torch.tensor([0] * 50 + [1] * 19)
    clean_prob = clean_prob_by_class(random_probs(69), labels)
    assert (clean_prob[50:] == 1).all()
    assert (clean_prob[:50] < 0.5).any()


def test_refined_labels_are_equation_3_with_guesses_by_likely_mistakes() -> None:
    probs, labels, clean_prob = random_probs(4), torch.tensor([0, 1, 2, 0]), torch.tensor([0.0, 1.0, 0.25, 0.5])
    mistakes = torch.tensor([[1.0, 0.5, 1.0], [1.0, 1.0, 0.1], [0.2, 1.0, 1.0]])
    soft = refined(probs, labels, clean_prob, mistakes)
    for i in range(4):
        w, y = clean_prob[i].item(), int(labels[i])
        guess = [p * mistakes[c, y].item() for c, p in enumerate(probs[i].tolist())]
        expected = [w * (c == y) + (1 - w) * g / math.fsum(guess) for c, g in enumerate(guess)]
        assert soft[i].tolist() == pytest.approx(expected, abs=1e-3)


def test_a_label_that_no_other_class_gets_is_kept_whatever_is_predicted() -> None:
    soft = refined(torch.tensor([[0.0, 1.0]]), torch.tensor([0]), torch.tensor([0.0]), torch.eye(2))
    assert soft.tolist() == [[1.0, 0.0]]
