"""annotators.csv and its summary. Oracle: the votes below, counted by hand."""

import csv
import io

import numpy as np
import pytest

from dividemix.data.votes import Votes
from dividemix.judging.annotators import annotators_csv, summarise_votes
from dividemix.judging.label_issues import LabelIssues

# The classes are cat, dog and owl, but nobody voted for owl: the votes are numbers of the options dog and cat.
CHOICES = np.array([[0, 0, -1, 1], [1, 1, -1, -1], [1, 0, -1, -1], [0, 0, -1, 0]])
VOTES = Votes(
    annotators=("anna", "ben", "nobody", "=carl"),
    options=("dog", "cat"),
    choices=CHOICES,
    confidence=np.array([0.6, 1.0, 0.4, 1.0]),
    accuracy=np.array([0.9, 0.8, 0.7, 0.5]),
)
ISSUES = LabelIssues(
    labels=np.array([1, 0, 0, 1]),  # dog, cat, cat, dog
    pred_probs=np.array([[0.8, 0.1, 0.1], [0.8, 0.1, 0.1], [0.1, 0.1, 0.8], [0.1, 0.8, 0.1]], np.float32),
    clean_prob=np.full((1, 4), 0.9),
    losses=np.zeros((1, 4)),
    classes=("cat", "dog", "owl"),
    paths=None,
)


def test_each_annotator_is_compared_with_the_consensus_and_with_the_model() -> None:
    """The model predicts cat, cat, owl, dog. The least accurate is first, and one without votes has no figures."""
    table = list(csv.DictReader(io.StringIO(annotators_csv(VOTES, ISSUES))))
    rows = [tuple(row.values()) for row in table]
    assert rows == [
        ("'=carl", "2", "0.5000", "0.5000", "1.0000"),
        ("nobody", "0", "", "", ""),
        ("ben", "4", "0.8000", "0.7500", "0.5000"),
        ("anna", "4", "0.9000", "1.0000", "0.5000"),
    ]


def test_the_summary_counts_votes_and_disputes() -> None:
    told = summarise_votes(VOTES)
    assert (told["num_annotators"], told["num_votes"], told["num_disputed"]) == (4, 10, 2)
    assert told["mean_confidence"] == pytest.approx(0.75)
