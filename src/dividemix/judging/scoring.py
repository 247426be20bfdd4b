"""Scores, from true labels, which training never sees.

Shapes: N samples, C classes, K networks.
"""

import statistics
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dividemix.judging.records import EpochRow, RunSummary, TestScores

_TOP = 5  # of top-5 accuracy, which is measured if there are more classes


def clean_auc(clean_prob: NDArray[np.float64], is_clean: NDArray[np.bool_]) -> float | None:
    """Area under the ROC curve of clean_prob (N,) for telling clean labels from wrong ones; None without both kinds.

    It is the chance that a clean sample scores above a wrong one, ties counting half (Mann-Whitney).
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
    """Percent of rows of probs (N, C) with the label among the k largest entries; ties go to the first classes."""
    largest = np.argsort(-probs, axis=1, kind="stable")[:, :k]
    return float(100 * np.mean((largest == labels[:, None]).any(axis=1)))


def test_scores(probs: NDArray[np.float32], labels: NDArray[np.int64]) -> TestScores:
    """Accuracies on test images from probs (K, N, C)."""
    together = probs.mean(axis=0)
    scores: TestScores = {
        "acc": accuracy(together, labels),
        "acc_by_net": [accuracy(net_probs, labels) for net_probs in probs],
    }
    if probs.shape[2] > _TOP:
        scores["top5"] = top_accuracy(together, labels, _TOP)
    return scores


def class_recall(
    probs: NDArray[np.float32], labels: NDArray[np.int64], classes: Sequence[str]
) -> dict[str, float | None]:
    """For each class the percent of its samples that are recognised; None for a class without samples."""
    right = probs.argmax(axis=1) == labels
    return {
        name: float(100 * right[labels == label].mean()) if (labels == label).any() else None
        for label, name in enumerate(classes)
    }


def best_of(accuracies: Sequence[float]) -> float | None:
    """Section 4.2's "best": the maximum over all epochs; None without any."""
    return max(accuracies, default=None)


def mean_of_last(accuracies: Sequence[float]) -> float | None:
    """Section 4.2's "last": the mean over the last 10 epochs; None without any."""
    return statistics.fmean(accuracies[-10:]) if accuracies else None


def summarise(rows: Sequence[EpochRow], *, method: str, seed: int, kept_epoch: int, noise_rate: float) -> RunSummary:
    """The summary of a run from its metrics; the caller adds what the metrics lack."""
    accuracies = [row["test_acc"] for row in rows if row["test_acc"] is not None]
    last, kept = rows[-1], rows[kept_epoch - 1]
    auc = last.get("clean_auc")
    summary: RunSummary = {
        "method": method,
        "seed": seed,
        "epochs": last["epoch"],
        "best_acc": best_of(accuracies),
        "last_acc": mean_of_last(accuracies),
        "final_acc": last["test_acc"],
        "clean_auc": None if auc is None else float(np.mean(auc)),
        "num_labeled": last.get("num_labeled"),
        "seconds": sum(row["seconds"] for row in rows),
        "kept_epoch": kept_epoch,
        "num_skipped": 0,
        "choices": [],
        "noise_rate": noise_rate,
    }
    if "val_acc" in kept:
        summary["kept_val_acc"] = kept["val_acc"]
    return summary
