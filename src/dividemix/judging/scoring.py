"""Scores. Here, and not in training, true labels are looked at.

Shapes: N samples, C classes, K networks.
"""

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_TOP = 5  # predictions among which the label counts as recognised, where there are more classes


def clean_auc(clean_prob: NDArray[np.float64], is_clean: NDArray[np.bool_]) -> float | None:
    """Area under the ROC curve of clean_prob (N,) for telling clean labels from wrong ones; None without both kinds.

    The chance that a clean sample scores above a wrong one, ties counting half (Mann-Whitney).
    """
    num_clean = int(is_clean.sum())
    num_wrong = len(is_clean) - num_clean
    if num_clean == 0 or num_wrong == 0:
        return None
    _, position, counts = np.unique(clean_prob, return_inverse=True, return_counts=True)
    mean_rank = np.cumsum(counts) - (counts - 1) / 2  # ties share the mean of their ranks, from 1
    rank_sum = mean_rank[position][is_clean].sum()
    return float((rank_sum - num_clean * (num_clean + 1) / 2) / (num_clean * num_wrong))


def accuracy(probs: NDArray[np.float32], labels: NDArray[np.int64]) -> float:
    """Percent of rows of probs (N, C) whose largest entry is at the label."""
    return float(100 * np.mean(probs.argmax(axis=1) == labels))


def top_accuracy(probs: NDArray[np.float32], labels: NDArray[np.int64], k: int) -> float:
    """Percent of rows of probs (N, C) with the label among the k largest entries; of equals, the first classes are."""
    largest = np.argsort(-probs, axis=1, kind="stable")[:, :k]
    return float(100 * np.mean((largest == labels[:, None]).any(axis=1)))


def test_scores(probs: NDArray[np.float32], labels: NDArray[np.int64]) -> dict[str, Any]:
    """Accuracies in percent on images to test on, from probs (K, N, C).

    `acc` of the networks together, `acc_by_net` of each alone, and `top5` together where there are more than five
    classes.
    """
    together = probs.mean(axis=0)
    scores = {
        "acc": accuracy(together, labels),
        "acc_by_net": [accuracy(net_probs, labels) for net_probs in probs],
    }
    return scores | ({"top5": top_accuracy(together, labels, _TOP)} if probs.shape[2] > _TOP else {})


def class_recall(
    probs: NDArray[np.float32], labels: NDArray[np.int64], classes: Sequence[str]
) -> dict[str, float | None]:
    """For each class the percent of its samples that are recognised; None for a class without samples."""
    right = probs.argmax(axis=1) == labels
    return {
        name: float(100 * right[labels == label].mean()) if (labels == label).any() else None
        for label, name in enumerate(classes)
    }


def kept_scores(row: dict[str, Any], tests: Iterable[str]) -> dict[str, Any]:
    """What the summary says of the epoch that is kept, from its metrics, given the names of the sets to test on.

    `kept_acc` on the test images and `kept_val_acc` on those that chose the epoch, where there are any; the other
    accuracies under the names that they have in the metrics, such as test_top5 and ilsvrc12_acc.
    """
    names = {"test_acc": "kept_acc", "val_acc": "kept_val_acc"}
    measured = [f"{test}_{score}" for test in tests for score in ("acc", "top5")]
    return {names.get(name, name): row[name] for name in [*measured, "val_acc"] if name in row}


def best_of(accuracies: Sequence[float]) -> float | None:
    """Section 4.2's "best": across all epochs; None without any."""
    return max(accuracies, default=None)


def mean_of_last(accuracies: Sequence[float]) -> float | None:
    """Section 4.2's "last": the mean over the last 10 epochs; None without any."""
    return statistics.fmean(accuracies[-10:]) if accuracies else None


def summarise(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The figures of a run from its metrics: best, last (mean of the last 10 epochs) and final accuracy, AUC, time."""
    accuracies = [row["test_acc"] for row in rows if row["test_acc"] is not None]
    auc = rows[-1].get("clean_auc")
    return {
        "epochs": rows[-1]["epoch"],
        "best_acc": best_of(accuracies),
        "last_acc": mean_of_last(accuracies),
        "final_acc": rows[-1]["test_acc"],
        "clean_auc": None if auc is None else float(np.mean(auc)),
        "num_labeled": rows[-1].get("num_labeled"),
        "seconds": sum(row["seconds"] for row in rows),
    }
