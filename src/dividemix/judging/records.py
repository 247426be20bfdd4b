"""The records that a run writes as JSON: an epoch in metrics.jsonl, and summary.json. No torch import.

Accuracies are in percent. NotRequired values are absent if they were not measured.
"""

from typing import Any, NotRequired, TypedDict


class TestScores(TypedDict):
    """Accuracies on one set of test images."""

    acc: float  # of the nets together
    acc_by_net: list[float]  # of each net alone
    top5: NotRequired[float]  # of the nets together, with more than five classes


class LossHistogram(TypedDict):
    """The normalised losses that one division saw, in equal bins from low to high."""

    low: float
    high: float
    counts: list[int]
    clean_curve: list[float]  # expected counts of the small-loss component
    wrong_curve: list[float]  # expected counts of the large-loss component
    wrong_counts: NotRequired[list[int]]  # of labels known to be wrong


class EpochRow(TypedDict):
    """An epoch: a line of metrics.jsonl."""

    epoch: int
    phase: str
    selects: bool  # whether the epoch to keep may be one of its phase
    seconds: float
    cpu_seconds: NotRequired[float]  # of processor time, if a CPU trains: other programs do not lengthen it
    profile: dict[str, float]  # seconds of the epoch's parts
    losses: dict[str, list[float]]  # the mean of each loss term, for each net
    figures: dict[str, float]  # what else the method reports, such as lambda_u
    test_acc: float | None
    test_acc_by_net: NotRequired[list[float]]
    test_top5: NotRequired[float]
    other_tests: NotRequired[dict[str, TestScores]]
    val_acc: NotRequired[float]  # on the samples held out, or on clean validation images
    num_val: NotRequired[int]
    val_is_clean: NotRequired[bool]
    num_labeled: NotRequired[list[int]]  # labels kept by each division
    num_divided: NotRequired[int]
    clean_auc: NotRequired[list[float] | None]  # of each division's clean probabilities, where true labels are known
    loss_histograms: NotRequired[list[LossHistogram]]


class ChoiceRecord(TypedDict):
    """A setting that was chosen for the user."""

    name: str
    value: Any
    reason: str


class NoiseSummary(TypedDict):
    """The noise that was added."""

    spec: str
    nominal: float
    true: float  # share of labels that differ from the true one


class AnnotatorSummary(TypedDict):
    """The votes of several annotators."""

    num_annotators: int
    num_votes: int
    num_disputed: int  # samples on which not all votes are the same
    krippendorff_alpha: float | None
    mean_confidence: float  # of the consensus, over the samples


class ExpectedIssues(TypedDict):
    """Expected numbers of wrong labels, without true labels; the numbers only if held-out labels tell them."""

    is_calibrated: bool  # whether there are enough held-out labels, of classes that were learned
    num_wrong: NotRequired[float]  # of classes that were learned
    low: NotRequired[float]  # nine times in ten the number is between these two
    high: NotRequired[float]
    precision_at: NotRequired[
        dict[str, float]
    ]  # the share of wrong labels among the first k lines, and among the "flagged" ones


class RunSummary(TypedDict):
    """summary.json of a finished run."""

    method: str
    seed: int
    epochs: int
    best_acc: float | None  # across all epochs (Section 4.2)
    last_acc: float | None  # mean of the last 10 epochs (Section 4.2)
    final_acc: float | None
    clean_auc: float | None  # in the last epoch, mean over the divisions
    num_labeled: list[int] | None  # in the last epoch
    seconds: float
    kept_epoch: int
    num_skipped: int
    digest: NotRequired[str]  # of the rest, the time excepted, and of label_issues.csv
    probs_digest: NotRequired[str]  # of pred_probs.npy
    choices: list[ChoiceRecord]
    noise_rate: float  # estimated share of wrong labels
    notes: NotRequired[list[str]]  # what the user should know about how the data was read
    noise: NotRequired[NoiseSummary]
    annotators: NotRequired[AnnotatorSummary]
    class_noise: NotRequired[dict[str, float | None]]  # the same by given label; runs of 0.1 have none
    expected: NotRequired[ExpectedIssues]
    cautions: NotRequired[list[str]]  # sentences to read before trusting the flags
    extended_after: NotRequired[list[int]]  # the epochs at which the finished run was given more
    kept_acc: NotRequired[float | None]
    kept_val_acc: NotRequired[float]
    test_top5: NotRequired[float]
    other_tests: NotRequired[dict[str, TestScores]]
    class_recall: NotRequired[dict[str, float | None]]


def main_loss(row: EpochRow) -> float | None:
    """The loss of an epoch, as a mean over the nets, or its first term; None without any."""
    terms = row["losses"]
    values = terms.get("loss") or next(iter(terms.values()), [])
    return sum(values) / len(values) if values else None
