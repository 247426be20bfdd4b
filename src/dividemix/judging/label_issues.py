"""What the trained networks think of every given label: scores, flags, suggestions, and label_issues.csv.

Shapes: N samples, C classes, K networks.
"""

import csv
import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dividemix.data.classes import Label
from dividemix.data.spreadsheet import as_field
from dividemix.data.votes import Votes
from dividemix.errors import DivergedError, InputError
from dividemix.judging.before_labels import BeforeLabels, Predictions
from dividemix.judging.calibration import Calibration
from dividemix.judging.issue_parquet import write_parquet
from dividemix.judging.learned import is_guess, learned_classes
from dividemix.judging.odd_samples import OddSamples
from dividemix.judging.rare_labels import calibrate_judged
from dividemix.judging.records import ExpectedIssues
from dividemix.judging.vote_evidence import vote_evidence, weighed
from dividemix.methods.method import Judgement
from dividemix.settings import checked_path

_LINES = 10_000  # of a block of label_issues.csv
_TEXT_LENGTH = 300  # characters of a text in label_issues.csv


@dataclass(frozen=True, eq=False, repr=False)
class LabelIssues:
    """Arrays in the order of the samples that were used; `order` ranks them, worst first."""

    classes: tuple[Label, ...]  # in the type of the given labels
    paths: tuple[str, ...] | None
    labels: NDArray[np.int64]  # (N,): as given; positions in `classes`
    pred_probs: NDArray[np.float32]  # (N, C): what the networks predict together
    losses: NDArray[np.float64]  # (K, N): cross-entropy of the given label by each network
    clean_prob: NDArray[np.float64]  # (K, N): each network's probability that the given label is right
    sample_rows: NDArray[np.int64] | None = None  # (N,): each sample's position in the data as given; None: its index
    votes: Votes | None = None  # on the N samples, if several annotators labelled them
    odd: OddSamples | None = None  # near-duplicates and outliers among samples that are vectors
    texts: tuple[str, ...] | None = None  # of the N samples, if they are texts
    sample_probs: Predictions | None = None  # (N, C): predictions that do not use the given labels
    unseen: NDArray[np.int64] | None = None  # indices of samples whose labels no network has seen
    is_judged: NDArray[np.bool_] | None = None  # (N,): not where the networks know too little of the class; None: all

    def __repr__(self) -> str:
        return f"LabelIssues({len(self.labels):,} samples, {int(self.is_label_issue.sum()):,} labels look wrong)"

    @property
    def names(self) -> tuple[str, ...]:
        """The classes as files and pages have them."""
        return tuple(map(str, self.classes))

    @cached_property
    def predicted(self) -> NDArray[np.int64]:
        """(N,): the suggested label, a position in `classes`."""
        predicted: NDArray[np.int64] = self.pred_probs.argmax(axis=1)
        return predicted

    @cached_property
    def calibration(self) -> Calibration:
        """How sure it is that each label is wrong, and how many are.

        Of a label that cannot be judged, nothing is known but how many of the others are wrong.
        """
        arrays = self.sample_probs, self.labels, self.clean_prob.mean(axis=0), self.unseen, self.evidence
        return calibrate_judged(*arrays, is_judged=self.is_judged)

    @cached_property
    def evidence(self) -> NDArray[np.float64] | None:
        """(N,): what the annotators' votes say against each label (vote_evidence.py); None without votes."""
        return None if self.votes is None else vote_evidence(self.votes.confidence)

    @cached_property
    def label_score(self) -> NDArray[np.float32]:
        """(N,): the probability that the given label is right, low is bad.

        Without held-out samples, by which it is calibrated, that of the given label by the networks, which cleanlab
        calls self-confidence.
        """
        score: NDArray[Any] = self.pred_probs[np.arange(len(self.labels)), self.labels]
        if self.calibration.temperature is not None:
            score = 1 - self.calibration.wrong_prob
        elif self.evidence is not None:
            score = weighed(score.astype(np.float64), -self.evidence)
        if self.is_judged is not None:
            score = np.where(self.is_judged, score, 1 - self.calibration.wrong_prob)
        return score.astype(np.float32)

    @cached_property
    def is_label_issue(self) -> NDArray[np.bool_]:
        """(N,): where the label is more likely wrong than right, and another one is predicted.

        Both conditions are needed: a hard sample has a large loss, too, though the networks agree with its label. The
        limit does not follow tau: training may keep a label that a person should look at. A label that cannot be judged
        is not flagged, nor is one of a class that was not learned.
        """
        return self._is_suspicious & self.is_learned

    @cached_property
    def is_learned(self) -> NDArray[np.bool_]:
        """(N,): whether the networks have learned the class of the label; nowhere if they only guess."""
        classes = learned_classes(self.labels, self.predicted, len(self.classes))
        return np.asarray(classes[self.labels] & (not self.is_guess))

    @cached_property
    def is_guess(self) -> bool:
        """Whether the networks predict held-out labels no better than one class for all samples would."""
        return is_guess(self.sample_probs, self.labels, self.unseen)

    @cached_property
    def _is_suspicious(self) -> NDArray[np.bool_]:
        """(N,): what is flagged if the class was learned."""
        issue: NDArray[np.bool_] = (self.calibration.wrong_prob > 0.5) & (self.predicted != self.labels)
        return issue if self.is_judged is None else issue & self.is_judged

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """(N,): sample indices, suspicious ones first, each group by score; those that are flagged are suspicious."""
        return np.lexsort((self.label_score, ~self._is_suspicious))

    @property
    def noise_rate(self) -> float:
        """The share of labels that are flagged: an estimate of the share of wrong labels."""
        return float(self.is_label_issue.mean())

    @property
    def expected(self) -> ExpectedIssues:
        """How many labels are expected to be wrong, and what share of the most suspicious ones; no number if unknown.

        Nothing is expected of classes that were not learned, and of the first lines if they have such labels.
        """
        found, is_learned = self.calibration, self.is_learned
        if found.temperature is None or not is_learned.any():
            return {"is_calibrated": False}
        part = float(found.wrong_prob[is_learned].sum()) / max(found.expected, 1e-12) if not is_learned.all() else 1.0
        at = {str(k): self.order[:k] for k in (10, 100, 1000, 10_000) if k <= len(self.labels)}
        at = {name: first for name, first in at.items() if is_learned[first].all()}
        at |= {"flagged": self.order[self.is_label_issue[self.order]]}
        return {
            "num_wrong": round(part * found.expected, 1),
            "low": round(part * found.low, 1),
            "high": round(part * found.high, 1),
            "is_calibrated": True,
            "precision_at": {
                name: round(float(found.wrong_prob[one].mean()), 4) for name, one in at.items() if len(one)
            },
        }

    @property
    def noise_matrix(self) -> NDArray[np.float64]:
        """(C, C): estimated joint distribution of given (rows) and true label (columns)."""
        believed = np.where(self.is_label_issue, self.predicted, self.labels)
        counts = np.zeros((len(self.classes), len(self.classes)))
        np.add.at(counts, (self.labels, believed), 1)
        return counts / len(self.labels)

    @property
    def class_noise(self) -> dict[str, float | None]:
        """For each class the estimated share of wrong labels among its judged ones; None for a class without any."""
        judged = self.labels[self.is_learned if self.is_judged is None else self.is_learned & self.is_judged]
        num_judged = np.bincount(judged, minlength=len(self.classes)).tolist()
        num_wrong = np.bincount(self.labels[self.is_label_issue], minlength=len(self.classes)).tolist()
        each = zip(self.names, num_judged, num_wrong, strict=True)
        return {name: wrong / number if number else None for name, number, wrong in each}

    @property
    def unlearned_classes(self) -> tuple[str, ...]:
        """The classes that are given often, and almost never predicted: the networks have not learned them."""
        is_learned = learned_classes(self.labels, self.predicted, len(self.classes))
        return tuple(name for name, is_one in zip(self.names, is_learned, strict=True) if not is_one)

    @property
    def rare_classes(self) -> tuple[str, ...]:
        """The classes of which a label cannot be judged, since the networks have seen too few samples of them."""
        rare = [] if self.is_judged is None else np.unique(self.labels[~self.is_judged]).tolist()
        return tuple(self.names[k] for k in rare)

    def rows(self) -> Iterator[dict[str, Any]]:
        """The lines of label_issues.csv, worst first; labels in the type of the given ones."""
        is_issue, score = self.is_label_issue, self.label_score
        predicted, predicted_prob = self.predicted, self.pred_probs.max(axis=1)
        wrong_prob = self.calibration.wrong_prob
        for i in self.order.tolist():
            yield {
                "index": i if self.sample_rows is None else int(self.sample_rows[i]),
                "path": "" if self.paths is None else self.paths[i],
                "is_label_issue": bool(is_issue[i]),
                "label_score": float(score[i]),
                "given_label": self.classes[self.labels[i]],
                "predicted_label": self.classes[predicted[i]],
                "predicted_prob": float(predicted_prob[i]),
                "wrong_prob": float(wrong_prob[i]),
                **{f"clean_prob_{k + 1}": float(prob[i]) for k, prob in enumerate(self.clean_prob)},
                **{f"loss_{k + 1}": float(loss[i]) for k, loss in enumerate(self.losses)},
                **({} if self.votes is None else self._vote_columns(i)),
                **({} if self.odd is None else self.odd.columns(i)),
                **({} if self.texts is None else {"text": _shortened(self.texts[i])}),
            }

    def _lines(self) -> Iterator[dict[str, Any]]:
        """The rows as files have them: labels are text."""
        for row in self.rows():
            yield row | {name: str(row[name]) for name in ("given_label", "predicted_label")}

    def _vote_columns(self, i: int) -> dict[str, Any]:
        """The votes on a sample, and the probability of their consensus, which is the given label."""
        assert self.votes is not None
        return {"votes": self.votes.counted(i), "consensus_prob": float(self.votes.confidence[i])}

    def to_pandas(self) -> Any:
        """The lines of label_issues.csv as a pandas DataFrame. Raises InputError if pandas cannot be imported."""
        try:
            import pandas as pd
        except Exception as error:  # a broken installation may raise anything
            raise InputError(f"to_pandas needs pandas ({error}): pip install pandas") from error
        return pd.DataFrame(list(self.rows()))

    def matrix_csv(self) -> str:
        """The text of noise_matrix.csv: how many samples have each given label (line) and believed label (column)."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["given_label", *map(as_field, self.names)])
        counts = np.rint(self.noise_matrix * len(self.labels)).astype(int)
        for name, line in zip(self.names, counts.tolist(), strict=True):
            writer.writerow([as_field(name), *line])
        return text.getvalue()

    def to_parquet(self, path: Path | str) -> None:
        """Write the lines of label_issues.csv to a .parquet file; InputError if pyarrow or the folder is missing."""
        file = checked_path(path, "path")
        if not file.parent.is_dir():
            raise InputError(f"{file}: no such folder: create {file.parent} first")
        write_parquet(self._lines(), file)

    def to_csv(self) -> str:
        """The text of label_issues.csv."""
        return "".join(self.csv_blocks())

    def csv_blocks(self) -> Iterator[str]:
        """The text of label_issues.csv in blocks of lines, because that of a million samples is long."""
        rows = self._lines()
        block = list(islice(rows, _LINES))
        yield _csv([list(block[0])] if block else [])  # the names of the columns
        while block:
            yield _csv([[_written(value) for value in row.values()] for row in block])
            block = list(islice(rows, _LINES))


def _csv(lines: list[list[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()


def _shortened(text: str) -> str:
    """A text in one line, cut after a few hundred characters."""
    line = " ".join(text.split())
    return line if len(line) <= _TEXT_LENGTH else line[: _TEXT_LENGTH - 3] + "..."


def _written(value: float | str) -> float | str:
    """A value as it is written to label_issues.csv."""
    if isinstance(value, str):
        return as_field(value)
    return f"{value:.6g}" if isinstance(value, float) else value


def find_issues(
    judgement: Judgement,
    labels: NDArray[np.int64],
    *,
    classes: tuple[Label, ...],
    paths: tuple[str, ...] | None = None,
    rows: NDArray[np.int64] | None = None,
    votes: Votes | None = None,
    odd: OddSamples | None = None,
    texts: tuple[str, ...] | None = None,
    unseen: NDArray[np.int64] | None = None,
) -> LabelIssues:
    """The label issues of a judgement of samples with the given labels (N,), and what else is known of them.

    `unseen` are the indices of samples whose labels no network has seen. If the method predicts out of sample, these
    are all. Raises DivergedError if a probability is not finite: weights that are may still overflow.
    """
    extremes = (*judgement.pred_probs.aminmax(), *judgement.clean_prob.aminmax())  # NaN if one is; makes no copy
    if not all(map(math.isfinite, extremes)):
        raise DivergedError("training diverged: the networks' predictions are not finite; try a smaller lr")
    if judgement.is_out_of_sample:
        unseen = np.arange(len(labels))
    tensors = {name: value for name, value in vars(judgement).items() if name not in ("is_out_of_sample", "matrix")}
    arrays = {name: tensor.numpy() for name, tensor in tensors.items() if tensor is not None}
    if judgement.matrix is not None:
        arrays["sample_probs"] = BeforeLabels(arrays["pred_probs"], labels, judgement.matrix.numpy())
    about: dict[str, Any] = {"votes": votes, "odd": odd, "texts": texts, "unseen": unseen}
    return LabelIssues(classes=classes, paths=paths, labels=labels, sample_rows=rows, **about, **arrays)
