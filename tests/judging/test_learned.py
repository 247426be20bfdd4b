"""Classes that were not learned. Oracles: the definitions, by hand; the same issues with the class learned."""

from typing import Any

import numpy as np
import pytest
import torch

from dividemix.judging import learned
from dividemix.judging.label_issues import LabelIssues, find_issues
from dividemix.judging.learned import is_guess, learned_classes
from dividemix.methods.method import Judgement

CLASSES = ("ant", "bee", "cat")


def test_a_class_is_not_learned_if_it_is_often_given_and_almost_never_predicted() -> None:
    labels = np.repeat([0, 1, 2, 3], [30, 20, 20, 9])
    predicted = np.repeat([0, 1, 0, 2, 0], [30, 2, 18, 1, 28])
    assert learned_classes(labels, predicted, 5).tolist() == [True, True, False, True, True]


@pytest.mark.parametrize("block", [10_000, 4])
@pytest.mark.parametrize(("num_right", "guess"), [(6, True), (7, False)])
def test_a_guess_is_no_better_than_the_most_frequent_held_out_label(
    num_right: int, guess: bool, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learned, "_BLOCK", block)
    labels = np.array([0] * 6 + [1] * 4 + [2] * 90)
    probs = np.eye(3, dtype=np.float32)[np.where(np.arange(100) < num_right, labels, 2)]
    assert is_guess(probs, labels, np.arange(10)) is guess
    assert is_guess(probs, labels, None) is False
    assert is_guess(None, labels, np.arange(10)) is False


def issues(predicted: list[int], labels: list[int], **about: Any) -> LabelIssues:
    """Out-of-sample predictions, 90 % sure, of samples with these labels."""
    probs = torch.full((len(labels), 3), 0.05)
    probs[range(len(labels)), predicted] = 0.9
    clean = probs[range(len(labels)), labels][None].double()
    return find_issues(Judgement(probs, -clean.log(), clean, probs, True), np.array(labels), classes=CLASSES, **about)


LABELS = [0] * 200 + [1] * 200 + [2] * 50


def test_labels_of_a_class_that_was_not_learned_are_not_flagged_and_nothing_is_promised_of_them() -> None:
    """All 50 of the cat are predicted as ant; so are 5 bees, which are flagged."""
    found = issues([0] * 200 + [0] * 5 + [1] * 195 + [0] * 50, LABELS)
    assert np.flatnonzero(found.is_label_issue).tolist() == list(range(200, 205))
    assert found.class_noise == {"ant": 0, "bee": 5 / 200, "cat": None}
    wrong_prob = found.calibration.wrong_prob
    assert (wrong_prob[400:] > 0.5).all()  # scores are what the networks say, and the order is theirs
    assert found.label_score == pytest.approx(1 - wrong_prob, abs=1e-6)
    assert (np.diff(found.label_score[found.order]) >= 0).all()
    expected = found.expected
    assert expected["num_wrong"] == pytest.approx(wrong_prob[:400].sum(), abs=0.1)
    assert expected["low"] <= expected["num_wrong"] <= expected["high"]
    assert expected["precision_at"] == {"flagged": pytest.approx(wrong_prob[200:205].mean(), abs=1e-4)}


def test_one_of_the_cat_learned_and_all_is_as_ever() -> None:
    """A tenth of its labels predicted: it counts as learned, and its labels are flagged."""
    found = issues([0] * 200 + [0] * 5 + [1] * 195 + [0] * 45 + [2] * 5, LABELS)
    assert found.is_label_issue.sum() == 50
    assert found.expected["num_wrong"] == pytest.approx(found.calibration.expected, abs=0.1)
    assert set(found.expected["precision_at"]) == {"10", "100", "flagged"}


def test_networks_that_only_guess_flag_nothing_and_promise_nothing() -> None:
    """As many labels are predicted as there are ants: 200. Every class is predicted for some."""
    found = issues([0] * 170 + [1] * 30 + [0] * 170 + [1] * 30 + [2] * 0 + [0] * 50, LABELS)
    assert found.is_guess
    assert not found.is_label_issue.any()
    assert found.noise_rate == 0
    assert found.expected == {"is_calibrated": False}
