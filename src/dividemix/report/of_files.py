"""The page's content from the files of a finished run, without its networks and its data. No torch import."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dividemix.data.mapped import DAMAGE
from dividemix.errors import InputError, counted
from dividemix.judging.issue_table import Issue, read_issue_table
from dividemix.judging.records import RunSummary
from dividemix.judging.run_classes import run_classes
from dividemix.planning.job import read_settings
from dividemix.report.content import PageContent, can_add_classes, expected_words
from dividemix.stored import digest_of_file, read_json


def content_of_files(run: Path) -> PageContent:
    """What the page shows of a finished run: its samples in the order of label_issues.csv, without the epochs.

    Raises:
        InputError: if there is no finished run, or a file of it is damaged.
    """
    issues = read_issue_table(run)
    if not issues:
        raise InputError(f"{run / 'label_issues.csv'}: damaged (it has no samples)")
    classes = run_classes(run)
    number = {name: label for label, name in enumerate(classes)}
    unknown = next((one for one in issues if not {one.given_label, one.predicted_label} <= number.keys()), None)
    if unknown is not None:
        raise InputError(f"{run / 'label_issues.csv'}: damaged (sample {unknown.index} has a label that is no class)")
    summary = read_json(run / "summary.json", RunSummary)
    data = str(read_settings(run / "config.yaml", of_run=True).get("data"))
    labels = np.array([number[one.given_label] for one in issues])
    predicted = np.array([number[one.predicted_label] for one in issues])
    is_issue = np.array([one.is_label_issue for one in issues])
    joint = np.zeros((len(classes), len(classes)))
    np.add.at(joint, (labels, np.where(is_issue, predicted, labels)), 1 / len(issues))
    return PageContent(
        title=f"{Path(data).name or data}, review",
        facts=[
            ("Run", str(run)),
            ("Method", f"{summary['method']}, {counted(summary['epochs'], 'epoch')}, seed {summary['seed']}"),
        ],
        choices=[(one["name"], str(one["value"]), one["reason"]) for one in summary["choices"]],
        rows=[],
        divisions=[],
        classes=classes,
        labels=labels,
        probs=_probs(run / "pred_probs.npy", summary.get("probs_digest"), len(issues), len(classes)),
        label_score=np.array([one.label_score for one in issues]),
        is_issue=is_issue,
        clean_prob=_by_net(issues, "clean_prob"),
        losses=_by_net(issues, "losses"),
        noise_rate=float(is_issue.mean()),
        noise_matrix=joint,
        sample_rows=np.array([one.index for one in issues]),
        can_add_classes=can_add_classes(data),
        paths=tuple(one.path for one in issues) if any(one.path for one in issues) else None,
        kept_epoch=summary["kept_epoch"],
        num_skipped=summary["num_skipped"],
        expected=expected_words(summary["expected"]) if "expected" in summary else "",
        cautions=summary.get("cautions", ()),
    )


def _by_net(issues: list[Issue], name: str) -> NDArray[np.float64]:
    """(K, N): a value of each network."""
    return np.array([getattr(one, name) for one in issues], dtype=np.float64).T.reshape(-1, len(issues))


def _probs(file: Path, digest: str | None, num_samples: int, num_classes: int) -> NDArray[np.float32]:
    """(N, C): the predicted probabilities, read from the disk where they are needed; earlier runs have no digest."""
    try:
        probs = np.load(file, mmap_mode="r", allow_pickle=False)
        if probs.shape != (num_samples, num_classes) or probs.dtype != np.float32:
            raise ValueError(f"{probs.dtype} of shape {probs.shape}")
        if not (probs.min() >= 0 and probs.max() <= 1):  # NaN too is refused
            raise ValueError("a probability is not in [0, 1]")
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror or error}") from error
    except DAMAGE as error:
        raise InputError(f"{file}: damaged ({' '.join(str(error).split())[:200]})") from error
    if digest is not None and digest != digest_of_file(file):
        raise InputError(f"{file}: damaged: not what was written; dividemix resume {file.parent} writes it again")
    result: NDArray[np.float32] = probs
    return result
