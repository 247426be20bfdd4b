"""Near-duplicates and outliers: the oracle is what was planted among random vectors."""

import csv
import io

import numpy as np
import torch

from dividemix.judging import odd_samples
from dividemix.judging.label_issues import LabelIssues
from dividemix.judging.odd_samples import duplicates_csv, find_odd_samples

VECTORS = np.random.default_rng(0).normal(size=(200, 8)).astype(np.float32)
VECTORS[50] = VECTORS[7]
VECTORS[90] = VECTORS[20] + 0.01
VECTORS[91] = VECTORS[20] - 0.01
VECTORS[33] += 60


def odd() -> odd_samples.OddSamples:
    found = find_odd_samples(torch.from_numpy(VECTORS))
    assert found is not None
    return found


def test_planted_duplicates_are_found_and_joined_into_sets() -> None:
    found = odd()
    assert np.flatnonzero(found.is_near_duplicate).tolist() == [7, 20, 50, 90, 91]
    assert found.duplicate_set[[7, 50]].tolist() == [1, 1]
    assert found.duplicate_set[[20, 90, 91]].tolist() == [2, 2, 2]
    assert found.near_duplicate_score[[7, 50]].tolist() == [0, 0]
    assert found.near_duplicate_score.max() == 1


def test_a_planted_outlier_is_found() -> None:
    found = odd()
    assert np.flatnonzero(found.is_outlier).tolist() == [33]
    assert found.outlier_score.argmin() == 33


def test_scale_does_not_matter() -> None:
    larger = find_odd_samples(torch.from_numpy(1000 * VECTORS))
    assert larger is not None
    np.testing.assert_array_equal(larger.duplicate_set, odd().duplicate_set)
    np.testing.assert_array_equal(larger.is_outlier, odd().is_outlier)


def test_equal_vectors_and_few_vectors_are_no_reason_to_fail() -> None:
    found = find_odd_samples(torch.ones(5, 3))
    assert found is not None
    assert found.duplicate_set.tolist() == [1] * 5
    assert not found.is_outlier.any()
    assert find_odd_samples(torch.ones(2, 3)) is None


def test_a_search_that_would_take_hours_is_left_out() -> None:
    assert find_odd_samples(torch.empty(1, 256).expand(1_000_000, 256)) is None


def issues(labels: list[int]) -> LabelIssues:
    probs = np.full((200, 2), 0.5, dtype=np.float32)
    return LabelIssues(
        classes=("=a", "b"),
        paths=None,
        labels=np.array(labels),
        pred_probs=probs,
        losses=np.zeros((1, 200)),
        clean_prob=np.ones((1, 200)),
        odd=odd(),
    )


def test_sets_with_different_labels_come_first() -> None:
    labels = [0] * 200
    labels[90] = 1
    text = duplicates_csv(issues(labels))
    assert text is not None
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["index"] for row in rows] == ["20", "90", "91", "7", "50"]
    assert [row["labels_differ"] for row in rows] == ["True"] * 3 + ["False"] * 2
    assert rows[0]["given_label"] == "'=a"  # no formula


def test_label_issues_have_the_columns() -> None:
    row = next(row for row in issues([0] * 200).rows() if row["index"] == 33)
    assert row["is_outlier"] is True
    assert row["is_near_duplicate"] is False
    assert row["duplicate_set"] == ""
