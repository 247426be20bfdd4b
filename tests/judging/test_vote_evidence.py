"""What votes add to the networks' opinion. Oracles: Bayes' rule in a loop; labels drawn with known confidence."""

from typing import Any

import numpy as np
import pytest

from dividemix.data.votes import Votes
from dividemix.judging.label_issues import LabelIssues
from dividemix.judging.vote_evidence import vote_evidence, weighed


def votes_with(confidence: list[float]) -> Votes:
    choices = np.zeros((len(confidence), 1), dtype=np.int64)
    return Votes(("anna",), ("cat", "dog"), choices, np.array(confidence), np.ones(1))


def test_odds_are_multiplied_as_bayes_does() -> None:
    confidence, wrong = np.array([0.9, 0.6, 0.75]), np.array([0.2, 0.5, 0.9])
    found = weighed(wrong, vote_evidence(confidence))
    base = 0.25 / 0.75  # the odds of all: (0.1 + 0.4 + 0.25) / 3 are wrong
    for prob, sure, result in zip(wrong, confidence, found, strict=True):
        odds = prob / (1 - prob) * ((1 - sure) / sure) / base
        assert result == pytest.approx(odds / (1 + odds))
    assert found[2] == pytest.approx(0.9)  # as doubtful as all: nothing changes


def test_equal_confidence_and_no_votes_change_nothing() -> None:
    wrong = np.array([0.0, 0.3, 1.0])
    assert weighed(wrong, None) is wrong
    assert weighed(wrong, vote_evidence(np.full(3, 0.8))) == pytest.approx(wrong, abs=1e-8)


def test_confidence_of_one_and_of_zero_stays_finite() -> None:
    evidence = vote_evidence(np.array([0.0, 1.0, 0.5]))
    assert np.isfinite(evidence).all()
    assert evidence[0] > evidence[2] > evidence[1]


def test_networks_and_votes_that_are_both_honest_give_honest_probabilities() -> None:
    """Each label is drawn wrong with a probability of its votes; networks see a noisy sign of it. Ten bins."""
    rng = np.random.default_rng(0)
    doubt = rng.choice([0.03, 0.3, 0.6], 60_000, p=[0.6, 0.25, 0.15])
    is_wrong = rng.random(60_000) < doubt
    sign = rng.normal(np.where(is_wrong, 1.0, -1.0))  # the odds of a sign s are exp(2 s)
    rate = doubt.mean()
    alone = 1 / (1 + np.exp(-2 * sign) * (1 - rate) / rate)
    together = weighed(alone, vote_evidence(1 - doubt))
    bins = np.minimum((10 * together).astype(int), 9)
    for b in range(10):
        assert together[bins == b].mean() == pytest.approx(is_wrong[bins == b].mean(), abs=0.04)


def test_agreement_acquits_a_label_and_dispute_accuses_it() -> None:
    """The networks think the same of all four labels; the votes decide which are flagged, and the order."""
    probs = np.tile(np.array([[0.4, 0.6]], dtype=np.float32), (4, 1))
    about: dict[str, Any] = {
        "classes": ("cat", "dog"),
        "paths": None,
        "labels": np.zeros(4, dtype=np.int64),
        "pred_probs": probs,
    }
    opinion = np.full((1, 4), 0.4)
    issues = LabelIssues(
        **about, losses=-np.log(opinion), clean_prob=opinion, votes=votes_with([0.98, 0.6, 0.94, 0.97])
    )
    assert issues.is_label_issue.tolist() == [False, True, False, False]
    assert issues.order.tolist() == [1, 2, 3, 0]
    assert issues.calibration.wrong_prob[1] > 0.6 > issues.calibration.wrong_prob[2]
    alone = LabelIssues(**about, losses=-np.log(opinion), clean_prob=opinion)
    assert alone.is_label_issue.all()
