"""The digest in summary.json: whether it and label_issues.csv are what the finished run wrote. No torch import."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dividemix.errors import InputError
from dividemix.stored import digest_of_file, read_json

_NOT_RESULTS = ("digest", "seconds")  # equal trainings do not take equal times


def results_digest(summary: Mapping[str, Any], issues: Path) -> str:
    """The digest of a summary and of label_issues.csv. Raises InputError if that cannot be read."""
    return digest_of_file(issues, {name: value for name, value in summary.items() if name not in _NOT_RESULTS})


def check_results(run: Path) -> None:
    """Raise InputError unless the results in a run directory are those that were written.

    Runs without a summary, and those of earlier versions, have no digest.
    """
    path = run / "summary.json"
    if not path.is_file():
        return
    summary = read_json(path, dict[str, Any])
    if "digest" in summary and summary["digest"] != results_digest(summary, run / "label_issues.csv"):
        raise InputError(
            f"{run}: summary.json or label_issues.csv was changed or damaged: dividemix resume {run} writes both again"
        )
