"""Scores against scikit-learn, and against slow loops written from their definitions."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.metrics import recall_score, roc_auc_score, top_k_accuracy_score
from toys import epoch_row

from dividemix.judging import scoring
from dividemix.judging.records import EpochRow, RunSummary


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 1.0]), st.booleans()), min_size=2, max_size=60),
)
@settings(max_examples=200, deadline=None)
def test_clean_auc_with_ties_is_scikit_learns(pairs: list[tuple[float, bool]]) -> None:
    clean_prob, is_clean = np.array([p for p, _ in pairs]), np.array([c for _, c in pairs])
    if is_clean.all() or not is_clean.any():
        assert scoring.clean_auc(clean_prob, is_clean) is None
    else:
        assert scoring.clean_auc(clean_prob, is_clean) == pytest.approx(roc_auc_score(is_clean, clean_prob), abs=1e-12)


@pytest.mark.parametrize("decimals", [1, 2, 17])
def test_clean_auc_is_the_chance_that_a_clean_sample_scores_higher(decimals: int) -> None:
    rng = np.random.default_rng(0)
    is_clean = rng.random(80) < 0.6
    clean_prob: NDArray[Any] = np.round(np.clip(rng.normal(is_clean, 1.0), 0, 1), decimals)
    wins = [
        1.0 if high > low else 0.5 if high == low else 0.0
        for high in clean_prob[is_clean]
        for low in clean_prob[~is_clean]
    ]
    assert scoring.clean_auc(clean_prob, is_clean) == pytest.approx(np.mean(wins), abs=1e-12)


def test_clean_auc_of_many_samples_is_scikit_learns() -> None:
    """Sums of ranks are large here: nothing may overflow or round."""
    rng = np.random.default_rng(1)
    is_clean = rng.random(200_000) < 0.1
    clean_prob: NDArray[Any] = np.round(rng.random(200_000) + 0.3 * is_clean, 3)
    assert scoring.clean_auc(clean_prob, is_clean) == pytest.approx(roc_auc_score(is_clean, clean_prob), abs=1e-12)


def test_clean_auc_of_perfect_reversed_and_useless_scores() -> None:
    is_clean = np.array([True, True, False])
    assert scoring.clean_auc(np.array([0.9, 0.8, 0.1]), is_clean) == 1.0
    assert scoring.clean_auc(np.array([0.1, 0.2, 0.9]), is_clean) == 0.0
    assert scoring.clean_auc(np.array([0.5, 0.5, 0.5]), is_clean) == 0.5


def test_accuracy_by_a_loop() -> None:
    rng = np.random.default_rng(0)
    probs, labels = rng.random((37, 5)).astype(np.float32), rng.integers(5, size=37)
    right = sum(max(range(5), key=row.__getitem__) == label for row, label in zip(probs.tolist(), labels, strict=True))
    assert scoring.accuracy(probs, labels) == pytest.approx(100 * right / 37)
    assert type(scoring.accuracy(probs, labels)) is float


@pytest.mark.parametrize(("num_classes", "k"), [(7, 5), (50, 5), (3, 1)])
def test_top_accuracy_is_scikit_learns(num_classes: int, k: int) -> None:
    rng = np.random.default_rng(num_classes)
    probs = rng.dirichlet(np.ones(num_classes), 200).astype(np.float32)
    labels = np.concatenate([np.arange(num_classes), rng.integers(num_classes, size=200 - num_classes)])
    expected = top_k_accuracy_score(labels, probs, k=k)
    assert scoring.top_accuracy(probs, labels, k) == pytest.approx(100 * expected)


def test_top_accuracy_of_equal_probabilities_takes_the_first_classes() -> None:
    """As argmax does: top-1 is the accuracy, ties included."""
    probs, labels = np.full((6, 6), 1 / 6, dtype=np.float32), np.arange(6)
    assert scoring.top_accuracy(probs, labels, 5) == pytest.approx(100 * 5 / 6)
    assert scoring.top_accuracy(probs, labels, 1) == scoring.accuracy(probs, labels)


def test_class_recall_is_scikit_learns_and_none_for_an_absent_class() -> None:
    rng = np.random.default_rng(0)
    probs, labels = rng.random((200, 5)).astype(np.float32), rng.integers(4, size=200)
    recall = scoring.class_recall(probs, labels, ["a", "b", "c", "d", "never"])
    expected = 100 * recall_score(labels, probs.argmax(axis=1), labels=range(4), average=None, zero_division=0)
    assert list(recall) == ["a", "b", "c", "d", "never"]
    assert recall.pop("never") is None
    assert list(recall.values()) == pytest.approx(expected.tolist())


def summary_of(accuracies: Sequence[float | None], *, kept_epoch: int | None = None, **last: Any) -> RunSummary:
    """The summary of epochs with these accuracies, each of two seconds; `last` goes into the last one."""
    made = [epoch_row(epoch, seconds=2.0, test_acc=accuracy) for epoch, accuracy in enumerate(accuracies, start=1)]
    made[-1].update(cast(EpochRow, last))
    return scoring.summarise(made, method="robust", seed=3, kept_epoch=kept_epoch or len(made), noise_rate=0.25)


def test_the_summary_takes_best_of_all_mean_of_ten_and_the_final_epoch() -> None:
    accuracies = [50.0, 90.0, *map(float, range(60, 70)), 40.0]
    summary = summary_of(accuracies, clean_auc=[0.8, 0.9], num_labeled=[7, 9])
    assert summary["epochs"] == 13
    assert summary["best_acc"] == 90.0
    assert summary["last_acc"] == pytest.approx((sum(range(61, 70)) + 40) / 10)
    assert summary["final_acc"] == 40.0
    assert summary["clean_auc"] == pytest.approx(0.85)
    assert summary["num_labeled"] == [7, 9]
    assert summary["seconds"] == 26.0
    assert (summary["method"], summary["seed"], summary["noise_rate"]) == ("robust", 3, 0.25)


def test_the_summary_of_fewer_than_ten_epochs_takes_what_there_is() -> None:
    assert summary_of([10.0, 20.0])["last_acc"] == 15.0


def test_without_test_images_or_true_labels_figures_are_none() -> None:
    summary = summary_of([None, None])
    figures = (summary["best_acc"], summary["last_acc"], summary["final_acc"])
    assert (*figures, summary["clean_auc"], summary["num_labeled"]) == (None,) * 5
    assert summary_of([1.0], clean_auc=None)["clean_auc"] is None


def test_the_summary_has_what_was_measured_in_the_kept_epoch_and_nothing_else() -> None:
    measured = [epoch_row(1, test_acc=1.0, val_acc=3.0), epoch_row(2, test_acc=4.0)]
    kept = scoring.summarise(measured, method="dividemix", seed=0, kept_epoch=1, noise_rate=0.0)
    assert (kept["kept_epoch"], kept["kept_val_acc"], kept["final_acc"]) == (1, 3.0, 4.0)
    last = scoring.summarise(measured, method="dividemix", seed=0, kept_epoch=2, noise_rate=0.0)
    assert "kept_val_acc" not in last
