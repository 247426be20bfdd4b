"""Samples that are odd whatever their label is: near-duplicates and outliers, from the vectors alone.

Shapes: N samples, D numbers of a vector.
"""

import csv
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from dividemix.data.spreadsheet import as_field
from dividemix.judging.neighbours import nearest

if TYPE_CHECKING:
    from dividemix.judging.label_issues import LabelIssues

_NUM_NEIGHBOURS = 10
_NEAR = 0.13  # of the median distance to the nearest neighbour: closer ones are near-duplicates, as in cleanlab
_FENCE = 3  # interquartile ranges above the upper quartile of the logarithm: farther ones are outliers (Tukey)
_MOST_OPERATIONS = 4e12  # of a search: some minutes on two cores


@dataclass(frozen=True, eq=False)
class OddSamples:
    """What the vectors of N samples say. Scores are in [0, 1], low is odd."""

    near_duplicate_score: NDArray[np.float64]  # (N,): the distance to the nearest sample, 1 from the median on
    is_near_duplicate: NDArray[np.bool_]  # (N,)
    duplicate_set: NDArray[np.int64]  # (N,): the number of the set of near-duplicates, from 1; 0 for none
    outlier_score: NDArray[np.float64]  # (N,): the median distance to ten neighbours as a share of the sample's own
    is_outlier: NDArray[np.bool_]  # (N,)

    def columns(self, i: int) -> dict[str, Any]:
        """The values of a sample, as label_issues.csv has them."""
        return {
            "is_near_duplicate": bool(self.is_near_duplicate[i]),
            "duplicate_set": int(self.duplicate_set[i]) or "",
            "near_duplicate_score": float(self.near_duplicate_score[i]),
            "is_outlier": bool(self.is_outlier[i]),
            "outlier_score": float(self.outlier_score[i]),
        }


def find_odd_samples(vectors: Tensor) -> OddSamples | None:
    """The near-duplicates and outliers among vectors (N, D); None if there are too few, or a search takes too long."""
    num_samples, num_features = vectors.shape
    limit = _MOST_OPERATIONS * (1 if vectors.device.type == "cpu" else 100)
    if num_samples < 3 or 2.0 * num_samples**2 * num_features > limit:
        return None
    found, index = nearest(vectors, min(_NUM_NEIGHBOURS, num_samples - 1))
    distances, neighbours = found.double().cpu().numpy(), index.cpu().numpy()
    positive = distances[:, 0][distances[:, 0] > 0]
    usual = float(np.median(positive)) if len(positive) else 1.0
    is_near = distances <= _NEAR * usual
    sets = _joined(num_samples, np.argwhere(is_near), neighbours)
    mean = np.maximum(distances.mean(axis=1), 1e-12)
    logs = np.log(mean)
    low, high = np.quantile(logs, [0.25, 0.75])
    return OddSamples(
        near_duplicate_score=np.minimum(distances[:, 0] / usual, 1.0),
        is_near_duplicate=sets > 0,
        duplicate_set=sets,
        outlier_score=np.minimum(np.median(mean) / mean, 1.0),
        is_outlier=logs > high + _FENCE * max(high - low, 1e-6),
    )


def _joined(num_samples: int, pairs: NDArray[np.int64], neighbours: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of each sample's set (N,), from 1 in the order of the samples; near ones are in one set, others 0."""
    parent = list(range(num_samples))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for i, column in pairs.tolist():
        parent[root(i)] = root(int(neighbours[i, column]))
    members = sorted({i for i, _ in pairs.tolist()} | set(neighbours[tuple(pairs.T)].tolist()))
    numbers: dict[int, int] = {}
    sets = np.zeros(num_samples, dtype=np.int64)
    for i in members:
        sets[i] = numbers.setdefault(root(i), len(numbers) + 1)
    return sets


def duplicates_csv(issues: "LabelIssues") -> str | None:
    """The text of near_duplicates.csv: sets with different labels first, then the closest; None if there are none."""
    odd = issues.odd
    if odd is None or not odd.is_near_duplicate.any():
        return None
    members = [np.flatnonzero(odd.duplicate_set == number) for number in range(1, int(odd.duplicate_set.max()) + 1)]
    differ = [len(set(issues.labels[group].tolist())) > 1 for group in members]
    closest = [odd.near_duplicate_score[group].min() for group in members]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = ("duplicate_set", "labels_differ", "index", "path", "given_label", "predicted_label")
    writer.writerow([*names, "near_duplicate_score"])
    for place in sorted(range(len(members)), key=lambda place: (not differ[place], closest[place])):
        for i in members[place].tolist():
            row = i if issues.sample_rows is None else int(issues.sample_rows[i])
            path = "" if issues.paths is None else as_field(issues.paths[i])
            labels = [as_field(issues.names[label]) for label in (issues.labels[i], issues.predicted[i])]
            score = f"{odd.near_duplicate_score[i]:.6g}"
            writer.writerow([place + 1, differ[place], row, path, *labels, score])
    return text.getvalue()
