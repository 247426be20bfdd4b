"""The content of the page as plain values and numpy arrays. No torch import.

Shapes: N training samples, C classes, K networks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dividemix.data.builtin import BUILT_IN
from dividemix.judging.records import ExpectedIssues
from dividemix.report.data_map import DataMap

# Files whose labels are numbers of classes, or can be.
_NUMBERED = (".npz", ".npy", ".parquet", ".arrow", ".feather", ".json")


def can_add_classes(data: str) -> bool:
    """Whether corrections of the data may name a new class."""
    return data not in BUILT_IN and Path(data).suffix.lower() not in _NUMBERED


def expected_words(expected: ExpectedIssues) -> str:
    """How many labels are expected to be wrong, in sentences."""
    if not expected["is_calibrated"]:
        needed = "at least 100 held-out samples, and classes that the networks have learned"
        return f"How many labels are wrong is not estimated: that needs {needed}."
    about, low = round(expected["num_wrong"]), round(expected["low"])
    words = f"At least about {low:,} labels are probably wrong, more likely about {about:,}."
    words += " Wrong labels that look right to the networks are not counted, so there may be more."
    shares = expected["precision_at"]
    if "flagged" not in shares:
        return words
    words += f" {100 * shares['flagged']:.0f}\u00a0% of the flagged labels are expected to be wrong"
    if shares.get("100", 0.0) > shares["flagged"]:  # else fewer than 100 are flagged, or it says nothing more
        words += f", {100 * shares['100']:.0f}\u00a0% of the 100 most suspicious ones"
    return f"{words}."


@dataclass(frozen=True, kw_only=True, eq=False)
class PageContent:
    """A finished run: what was trained, how it went, and what the networks think of each given label."""

    title: str
    facts: Sequence[tuple[str, str]]  # (name, value): what was trained, and the results
    choices: Sequence[tuple[str, str, str]]  # (setting, value, reason): what was chosen automatically
    rows: Sequence[Mapping[str, Any]]
    """Epochs as in metrics.jsonl: epoch, phase, selects, test_acc, val_acc (on held-out noisy labels or, with
    val_is_clean, on clean validation images), num_labeled out of num_divided, clean_auc, noise_rate. A value that is
    absent or None is not shown."""
    divisions: Sequence[Mapping[str, Any]]
    """One for each epoch and net: epoch, net (the one that trains on it), low and high (range of the losses), counts
    (bins), clean_curve and wrong_curve (expected counts of the two mixture components in each bin), and wrong_counts
    if the true labels are known."""
    classes: tuple[str, ...]  # names of the C classes
    labels: NDArray[np.int64]  # (N,): the given labels
    probs: NDArray[np.float32]  # (N, C): what the networks predict together
    label_score: NDArray[np.float64]  # (N,): in [0, 1], low is bad
    is_issue: NDArray[np.bool_]  # (N,): whether the label is flagged as wrong
    clean_prob: NDArray[np.float64]  # (K, N): w_i by each network
    losses: NDArray[np.float64]  # (K, N): l_i by each network
    noise_rate: float  # estimated share of wrong labels
    noise_matrix: NDArray[np.float64]  # (C, C): estimated joint distribution of given (row) and suggested label
    sample_rows: NDArray[np.int64]  # (N,): the index of each sample in the data as given, from 0
    can_add_classes: bool  # whether corrected data may name a new class
    paths: tuple[str, ...] | None = None  # (N,): where each sample was read from; None for data without files
    true_labels: NDArray[np.int64] | None = None  # (N,): if known; then the flags are scored
    kept_epoch: int | None = None  # the epoch whose networks were kept
    num_skipped: int = 0  # samples that could not be read
    expected: str = ""  # sentences: how many labels are expected to be wrong
    cautions: Sequence[str] = ()  # sentences to read before trusting the flags
    map: DataMap | None = None  # of samples that are vectors
    apply: str | None = None  # the command that applies downloaded corrections; None if they cannot be applied

    def __post_init__(self) -> None:
        num_samples, num_classes = len(self.labels), len(self.classes)
        assert self.probs.shape == (num_samples, num_classes)
        assert self.label_score.shape == self.is_issue.shape == (num_samples,)
        assert self.clean_prob.shape == self.losses.shape == (len(self.clean_prob), num_samples)
        assert self.noise_matrix.shape == (num_classes, num_classes)
        assert self.paths is None or len(self.paths) == num_samples
        assert self.sample_rows.shape == (num_samples,)
        assert self.true_labels is None or self.true_labels.shape == (num_samples,)
