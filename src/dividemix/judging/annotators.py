"""How good each of several annotators is: annotators.csv, and their part of summary.json.

Shapes: N samples, A annotators.
"""

import csv
import io

import numpy as np
from numpy.typing import NDArray

from dividemix.data.spreadsheet import as_field
from dividemix.data.votes import Votes
from dividemix.judging.label_issues import LabelIssues
from dividemix.judging.records import AnnotatorSummary

_COLUMNS = ("annotator", "num_votes", "accuracy", "agreement_with_consensus", "agreement_with_model")


def annotators_csv(votes: Votes, issues: LabelIssues) -> str:
    """The text of annotators.csv: a line for each annotator, the least accurate first."""
    num_votes = (votes.choices >= 0).sum(axis=0)
    consensus, predicted = (_agreement(votes, labels, issues) for labels in (issues.labels, issues.predicted))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for a in np.argsort(votes.accuracy, kind="stable"):
        shares = (votes.accuracy[a], consensus[a], predicted[a])
        figures = (f"{share:.4f}" if num_votes[a] else "" for share in shares)
        writer.writerow((as_field(votes.annotators[a]), num_votes[a], *figures))
    return text.getvalue()


def summarise_votes(votes: Votes) -> AnnotatorSummary:
    """What summary.json says of the votes."""
    return {
        "num_annotators": len(votes.annotators),
        "num_votes": int((votes.choices >= 0).sum()),
        "num_disputed": votes.num_disputed,
        "krippendorff_alpha": votes.alpha,
        "mean_confidence": float(votes.confidence.mean()),
    }


def _agreement(votes: Votes, labels: NDArray[np.int64], issues: LabelIssues) -> NDArray[np.float64]:
    """(A,): the share of each annotator's votes that equal the labels (N,), which are numbers of the classes."""
    number = {name: position for position, name in enumerate(votes.options)}
    options = np.array([number.get(name, -2) for name in issues.names])[labels]  # -2: nobody voted for it
    is_vote = votes.choices >= 0
    same = ((votes.choices == options[:, np.newaxis]) & is_vote).sum(axis=0)
    return np.asarray(same / np.maximum(is_vote.sum(axis=0), 1))
