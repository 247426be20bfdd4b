"""Scores of the flags against scikit-learn's, which is the oracle, and degenerate cases."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, precision_score, recall_score, roc_auc_score

from dividemix.judging.quality import flag_quality


@pytest.mark.parametrize("digits", [1, 8], ids=["many ties", "no ties"])
def test_agrees_with_scikit_learn(digits: int) -> None:
    rng = np.random.default_rng(0)
    is_wrong = rng.random(1000) < 0.3
    score = (rng.random(1000) * np.where(is_wrong, 0.6, 1)).round(digits)
    flags = score < 0.35
    quality = flag_quality(score, flags, is_wrong)
    assert quality is not None
    assert quality["auc"] == pytest.approx(roc_auc_score(is_wrong, -score))
    assert quality["average_precision"] == pytest.approx(average_precision_score(is_wrong, -score))
    assert quality["precision"] == pytest.approx(precision_score(is_wrong, flags))
    assert quality["recall"] == pytest.approx(recall_score(is_wrong, flags))
    assert quality["num_wrong"] == is_wrong.sum()
    recall, precision = np.array(quality["curve"]).T
    assert (np.diff(recall) >= 0).all()
    assert recall[-1] == 1
    assert precision[-1] == pytest.approx(is_wrong.mean())
    assert len(recall) <= 200


def test_nothing_flagged_has_no_precision() -> None:
    quality = flag_quality(np.array([0.1, 0.9]), np.array([False, False]), np.array([True, False]))
    assert quality is not None
    assert quality["precision"] is None
    assert quality["recall"] == 0


@pytest.mark.parametrize("wrong", [True, False])
def test_one_kind_of_label_alone_cannot_be_scored(wrong: bool) -> None:
    assert flag_quality(np.array([0.1, 0.9]), np.array([True, False]), np.array([wrong, wrong])) is None
