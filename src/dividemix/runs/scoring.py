"""Scores. Here, and not in training, true labels are looked at.

Shapes: N samples, C classes.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


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


def class_recall(
    probs: NDArray[np.float32], labels: NDArray[np.int64], classes: Sequence[str]
) -> dict[str, float | None]:
    """For each class the percent of its samples that are recognised; None for a class without samples."""
    right = probs.argmax(axis=1) == labels
    return {
        name: float(100 * right[labels == label].mean()) if (labels == label).any() else None
        for label, name in enumerate(classes)
    }


def summarise(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The figures of a run from its metrics: best, last (mean of the last 10 epochs) and final accuracy, AUC, time."""
    accuracies = [row["test_acc"] for row in rows if row["test_acc"] is not None]
    auc = rows[-1].get("clean_auc")
    return {
        "epochs": rows[-1]["epoch"],
        "best_acc": max(accuracies, default=None),
        "last_acc": float(np.mean(accuracies[-10:])) if accuracies else None,
        "final_acc": rows[-1]["test_acc"],
        "clean_auc": None if auc is None else float(np.mean(auc)),
        "num_labeled": rows[-1].get("num_labeled"),
        "seconds": sum(row["seconds"] for row in rows),
    }
