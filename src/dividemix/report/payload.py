"""The JSON that the page carries, made from its content: totals of all samples, details of the worst ones only.

Shapes: N training samples, C classes, K networks, S suspects.
"""

import hashlib
import json
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dividemix.judging.quality import flag_quality
from dividemix.report.content import PageContent
from dividemix.report.opening_division import opening_division
from dividemix.report.shown import Shown

MAX_SUSPECTS = 1000
MAX_MATRIX_CLASSES = 40  # with more, the cells of the heat map are too small to click
_MAX_PAIRS = 40
MAX_SHOWN_BYTES = 12_000_000  # of what all cards show; the page stays under 15 MB
_NUM_LIKELY = 3
_ROW_KEYS = (
    *("epoch", "phase", "selects", "test_acc", "val_acc", "num_val", "val_is_clean"),
    *("num_labeled", "num_divided", "clean_auc", "noise_rate"),
)
_DIVISION_KEYS = ("epoch", "net", "low", "high", "counts", "clean_curve", "wrong_curve", "wrong_counts")


def payload(
    content: PageContent, show: Callable[[int], Shown | None], *, first: int = 0, limit: int = MAX_SUSPECTS
) -> dict[str, Any]:
    """All that the page shows, in JSON's types. Numbers have four significant digits, and NaN becomes None.

    `show(i)` is what a card shows of sample i (shown.py). The suspects are those from position `first` of the order of
    suspicion, at most `limit` of them.
    """
    return {
        "run": run_id(content),
        "title": content.title,
        "facts": [list(fact) for fact in content.facts],
        "choices": [list(choice) for choice in content.choices],
        "classes": list(content.classes),
        "can_add_classes": content.can_add_classes,
        "num_samples": len(content.labels),
        "num_issues": int(content.is_issue.sum()),
        "num_skipped": content.num_skipped,
        "kept_epoch": content.kept_epoch,
        "noise_rate": _short(content.noise_rate),
        "expected": content.expected,
        "cautions": list(content.cautions),
        "open_division": opening_division(content.divisions),
        "rows": [_only(row, _ROW_KEYS) for row in content.rows],
        "divisions": [_only(division, _DIVISION_KEYS) for division in content.divisions],
        "noise": _noise(content),
        "quality": _quality(content),
        "map": _map(content),
        "apply": content.apply,
        "suspects": _suspects(content, suspicion(content)[first : first + limit], show),
    }


def _map(content: PageContent) -> dict[str, Any] | None:
    """The points of the map with their labels; None for data that has none."""
    if content.map is None:
        return None
    index = content.map["samples"]
    return {
        "points": content.map["points"],
        "share": _short(content.map["share"]),
        "given": content.labels[index].tolist(),
        "suggested": content.probs[index].argmax(axis=1).tolist(),
        "flagged": content.is_issue[index].astype(int).tolist(),
    }


def run_id(content: PageContent) -> str:
    """The name under which a browser stores the review: the same for the same samples and scores."""
    digest = hashlib.sha256()
    for array in (content.labels, content.label_score, content.probs.argmax(axis=1), content.sample_rows):
        digest.update(np.ascontiguousarray(array).tobytes())
    digest.update("\0".join((*content.classes, *(content.paths or ()))).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:16]


def _quality(content: PageContent) -> Any:
    """How good the flags are; None if the true labels are not known."""
    if content.true_labels is None:
        return None
    return _short(flag_quality(content.label_score, content.is_issue, content.labels != content.true_labels))


def _noise(content: PageContent) -> dict[str, Any]:
    """Expected numbers of samples by given and suggested label: the largest, and all if the classes are few.

    `by_class` has how many samples have the label, and how many of these are flagged.
    """
    matrix = np.nan_to_num(content.noise_matrix).astype(np.float64)
    expected = matrix / max(matrix.sum(), 1e-12) * len(content.labels)
    wrong = expected.copy()
    np.fill_diagonal(wrong, 0)
    worst = np.argsort(-wrong, axis=None, kind="stable")[:_MAX_PAIRS]
    pairs = [(*map(int, np.unravel_index(cell, wrong.shape)), float(wrong.flat[cell])) for cell in worst]

    def numbers(labels: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.bincount(labels, minlength=len(content.classes))

    return {
        "pairs": [[given, suggested, _short(count)] for given, suggested, count in pairs if count >= 0.5],
        "by_class": np.stack([numbers(content.labels), numbers(content.labels[content.is_issue])], axis=1).tolist(),
        "matrix": _short(expected) if len(content.classes) <= MAX_MATRIX_CLASSES else None,
    }


def suspicion(content: PageContent) -> NDArray[np.int64]:
    """(N,): sample indices, the flagged ones first, each group by its score, worst first."""
    return np.lexsort((content.label_score, ~content.is_issue))


def _suspects(
    content: PageContent, order: NDArray[np.int64], show: Callable[[int], Shown | None]
) -> list[dict[str, Any]]:
    """The samples in their order, up to the largest total size of what their cards show."""
    suspects: list[dict[str, Any]] = []
    num_bytes = 0
    for i in order.tolist():
        shown = show(i)
        num_bytes += len(json.dumps(shown))
        if num_bytes > MAX_SHOWN_BYTES:
            break
        likely = np.argsort(-content.probs[i], kind="stable")[:_NUM_LIKELY].tolist()
        suspects.append(
            {
                "index": int(content.sample_rows[i]),
                "path": None if content.paths is None else content.paths[i],
                "given": int(content.labels[i]),
                "suggested": likely[0],
                "true": _true_label(content, i),
                "likely": [[label, _short(content.probs[i, label])] for label in likely],
                "score": _short(content.label_score[i]),
                "flagged": bool(content.is_issue[i]),
                "clean_prob": _short(content.clean_prob[:, i]),
                "loss": _short(content.losses[:, i]),
                "shown": shown,
            }
        )
    return suspects


def _only(mapping: Any, keys: Iterable[str]) -> dict[str, Any]:
    return {key: _short(mapping[key]) for key in keys if key in mapping}


def _short(value: Any) -> Any:
    """The value in JSON's types. Floats have four significant digits; those that are not finite become None."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: _short(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_short(inner) for inner in value]
    if isinstance(value, float):
        return float(f"{value:.4g}") if math.isfinite(value) else None
    return value


def _true_label(content: PageContent, i: int) -> int | None:
    """The number of a sample's true class; None if it is unknown, or the sample belongs to no class."""
    label = None if content.true_labels is None else int(content.true_labels[i])
    return None if label is None or label < 0 else label
