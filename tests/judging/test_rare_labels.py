"""Labels that cannot be judged. Oracle: judging/calibration.py on the others alone."""

from typing import Any

import numpy as np
import pytest
import torch

from dividemix.judging.calibration import Calibration, calibrate
from dividemix.judging.label_issues import LabelIssues, find_issues
from dividemix.judging.rare_labels import calibrate_judged
from dividemix.methods.method import Judgement

NUMBER = 400


def drawn() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.full(3, 0.3), NUMBER).astype(np.float32)
    labels = np.array([rng.choice(3, p=row / row.sum()) for row in probs.astype(float)])
    wrong = rng.random(NUMBER) < 0.2
    labels = np.where(wrong, (labels + 1) % 3, labels)
    own = probs[np.arange(NUMBER), labels].astype(np.float64)
    return {"probs": probs, "labels": labels, "clean_prob": own, "evidence": None, "unseen": np.arange(0, NUMBER, 2)}


@pytest.mark.parametrize("with_evidence", [False, True])
def test_nothing_is_concluded_from_labels_that_cannot_be_judged(with_evidence: bool) -> None:
    about, is_judged = drawn(), np.arange(NUMBER) % 8 != 3
    is_judged[:10] = False
    if with_evidence:
        about["evidence"] = np.random.default_rng(1).normal(size=NUMBER)
    found = calibrate_judged(**about, is_judged=is_judged)
    parts: dict[str, Any] = {
        name: None if about[name] is None else about[name][is_judged] for name in ("probs", "labels", "clean_prob")
    }
    evidence = None if about["evidence"] is None else about["evidence"][is_judged]
    held_out = np.array([k for k, i in enumerate(np.flatnonzero(is_judged)) if i % 2 == 0])
    expected = calibrate(**parts, evidence=evidence, unseen=held_out)
    np.testing.assert_array_equal(found.wrong_prob[is_judged], expected.wrong_prob)
    mean = expected.wrong_prob.mean()
    odds = mean / (1 - mean) * (1 if about["evidence"] is None else np.exp(about["evidence"][~is_judged]))
    np.testing.assert_allclose(found.wrong_prob[~is_judged], odds / (1 + odds))
    assert found.low / NUMBER == pytest.approx(expected.low / is_judged.sum())
    assert found.high / NUMBER == pytest.approx(expected.high / is_judged.sum())
    assert found.temperature == expected.temperature


@pytest.mark.parametrize("is_judged", [None, np.ones(NUMBER, dtype=bool)])
def test_labels_that_can_all_be_judged_are_calibrated_as_ever(is_judged: Any) -> None:
    found, expected = calibrate_judged(**drawn(), is_judged=is_judged), calibrate(**drawn())
    np.testing.assert_array_equal(found.wrong_prob, expected.wrong_prob)
    assert (found.low, found.high, found.temperature) == (expected.low, expected.high, expected.temperature)


def test_of_labels_of_which_none_can_be_judged_none_is_expected_to_be_wrong() -> None:
    found: Calibration = calibrate_judged(**drawn(), is_judged=np.zeros(NUMBER, dtype=bool))
    assert found.expected == 0
    assert (found.low, found.high) == (0, NUMBER)


@pytest.mark.parametrize("is_out_of_sample", [False, True])
def test_a_label_that_cannot_be_judged_is_kept_and_its_class_named(is_out_of_sample: bool) -> None:
    """Two labels that all speak against, one of which cannot be judged."""
    labels = np.array([0] * 60 + [1] * 60 + [2, 0])
    probs = torch.full((122, 3), 0.01)
    probs[range(120), labels[:120]] = 0.98
    probs[120:, 1] = 0.98
    clean = probs[range(122), labels][None].double()
    is_judged = torch.ones(122, dtype=torch.bool)
    is_judged[120] = False
    about: dict[str, Any] = {"sample_probs": probs, "is_out_of_sample": is_out_of_sample}
    judgement = Judgement(probs, -clean.log(), clean, **about, is_judged=is_judged)
    issues: LabelIssues = find_issues(judgement, labels, classes=("ant", "bee", "cat"))
    assert np.flatnonzero(issues.is_label_issue).tolist() == [121]
    assert issues.class_noise == {"ant": 1 / 61, "bee": 0, "cat": None}  # the label of the cat was not judged
    assert issues.rare_classes == ("cat",)
    assert issues.label_score[120] == pytest.approx(1 - issues.calibration.wrong_prob[120])
    assert issues.label_score[120] > 0.9
    assert find_issues(
        Judgement(probs, -clean.log(), clean, **about), labels, classes=("ant", "bee", "cat")
    ).is_label_issue[120]
