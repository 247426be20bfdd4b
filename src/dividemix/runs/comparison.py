"""Several runs side by side, from the files in their directories: neither data nor networks are loaded."""

import string
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from dividemix.errors import InputError
from dividemix.judging.issue_agreement import IssueAgreement, agreement, flagged_by, noise_by_class
from dividemix.judging.issue_table import read_issue_table
from dividemix.judging.records import EpochRow, RunSummary, main_loss
from dividemix.meant import or_meant_path
from dividemix.planning.job import read_settings
from dividemix.runs.checkpoints import saved_rows
from dividemix.runs.directory import RunDirectory
from dividemix.runs.unfinished import is_run

LETTERS = string.ascii_uppercase
CURVES = {  # by name: the heading
    "test_acc": "Test accuracy in percent",
    "val_acc": "Accuracy on held-out labels in percent",
    "loss": "Training loss",
    "labels_kept": "Labels kept in percent",
    "clean_auc": "AUC, right against wrong labels",
    "noise_rate": "Estimated noise in percent, before the epoch",
}


class ComparedRun(TypedDict):
    """A run: its results, and its curves over the epochs. What is absent or None was not measured."""

    letter: str
    path: str
    method: str
    num_epochs: int  # trained
    finished: bool
    seconds: float
    machine: str
    kept_acc: NotRequired[float | None]
    final_acc: float | None
    best_acc: float | None
    last_acc: float | None
    val_acc: NotRequired[float]
    clean_auc: float | None
    noise_rate: NotRequired[float]  # estimated share of wrong labels
    true_noise: NotRequired[float]  # of noise that was added
    num_flagged: NotRequired[int]
    noise_by_class: NotRequired[Mapping[str, float]]
    curves: dict[str, list[tuple[int, float]]]  # by name, as in CURVES: (epoch, value)


class ComparedPair(TypedDict):
    """Two runs, by letter, and how far their label issues agree."""

    first: str
    second: str
    agreement: IssueAgreement


class Comparison(TypedDict):
    """Runs side by side."""

    runs: list[ComparedRun]
    settings: dict[str, list[Any]]  # those that differ: for each run the value, None where the method has none
    pairs: list[ComparedPair]
    flagged_by: list[int]  # how many samples of all finished runs are flagged by 0, 1, ... of them


def compare(paths: Sequence[Path]) -> Comparison:
    """The runs side by side. Raises InputError unless they are two different runs or more, or if one is damaged."""
    for path in paths:
        if not is_run(path):
            wanted = "give directories that dividemix train wrote"
            raise InputError(f"{path}: not a run directory: {or_meant_path(path, wanted)}")
    named = list({path.resolve(): path for path in paths}.values())  # each once
    if len(paths) > 1 and len(named) == 1:
        raise InputError(f"{named[0]}: the same run is named {len(paths)} times: name another to compare it with")
    if not 2 <= len(named) <= len(LETTERS):
        change = "more" if len(named) < 2 else "fewer"
        raise InputError(f"compare takes 2 to {len(LETTERS)} runs, {len(named)} given: name {change}")
    settings = [read_settings(path / "config.yaml", of_run=True) for path in named]
    issues = {
        letter: read_issue_table(path)
        for letter, path in zip(LETTERS, named, strict=False)
        if (path / "summary.json").is_file()
    }
    runs = [_run(letter, path, values) for letter, path, values in zip(LETTERS, named, settings, strict=False)]
    for run in runs:
        if run["letter"] in issues:
            run["num_flagged"] = sum(issue.is_label_issue for issue in issues[run["letter"]])
            run["noise_by_class"] = noise_by_class(issues[run["letter"]])
    return {
        "runs": runs,
        "settings": _differing(settings),
        "pairs": [
            {"first": a, "second": b, "agreement": agreement(issues[a], issues[b])} for a, b in combinations(issues, 2)
        ],
        "flagged_by": flagged_by(list(issues.values())) if len(issues) > 1 else [],
    }


def _run(letter: str, path: Path, settings: Mapping[str, Any]) -> ComparedRun:
    """A run from its metrics, its summary if it is finished, and the machine it was trained on."""
    directory = RunDirectory(path)
    rows = saved_rows(directory)
    summary = directory.read_summary() if (path / "summary.json").is_file() else None
    tested = [row["test_acc"] for row in rows if row["test_acc"] is not None]
    run: ComparedRun = {
        "letter": letter,
        "path": str(path),
        "method": str(settings.get("method")),
        "num_epochs": len(rows),
        "finished": summary is not None,
        "seconds": sum(row["seconds"] for row in rows),
        "machine": _machine(directory),
        "final_acc": tested[-1] if tested else None,
        "best_acc": max(tested, default=None),
        "last_acc": None,
        "clean_auc": None,
        "curves": {name: points for name in CURVES if (points := _points(name, rows))},
    }
    if summary is not None:
        _add_summary(run, summary)
    return run


def _add_summary(run: ComparedRun, summary: RunSummary) -> None:
    run["last_acc"], run["clean_auc"] = summary["last_acc"], summary["clean_auc"]
    run["noise_rate"] = summary["noise_rate"]
    if "kept_acc" in summary:
        run["kept_acc"] = summary["kept_acc"]
    if "kept_val_acc" in summary:
        run["val_acc"] = summary["kept_val_acc"]
    if "noise" in summary:
        run["true_noise"] = summary["noise"]["true"]


def _machine(directory: RunDirectory) -> str:
    """What trained the run, as env.json has it."""
    first = next(iter(directory.read_environments()), {})
    name = first.get("processor") if first.get("device") == "cpu" else first.get("device")
    return f"{name}, {first.get('num_threads')} threads" if first.get("device") == "cpu" else str(name)


def _points(name: str, rows: Sequence[EpochRow]) -> list[tuple[int, float]]:
    """A curve over the epochs in which the value was measured."""
    points = []
    for row in rows:
        value = _value(name, row)
        if value is not None:
            points.append((row["epoch"], value))
    return points


def _value(name: str, row: EpochRow) -> float | None:
    """A value of an epoch: of several networks or divisions, the mean."""
    if name == "loss":
        return main_loss(row)
    if name == "labels_kept":
        kept = _mean(row.get("num_labeled", []))
        return None if kept is None else 100 * kept / max(row.get("num_divided", 0), 1)
    if name == "noise_rate":
        rate = row["figures"].get("noise_rate")
        return None if rate is None else 100 * rate
    if name == "clean_auc":
        return _mean(row.get("clean_auc") or [])
    if name == "val_acc":
        return row.get("val_acc")
    return row["test_acc"]


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _differing(settings: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """The settings whose value is not the same in all runs."""
    names = dict.fromkeys(name for one in settings for name in one)
    values = {name: [one.get(name) for one in settings] for name in names}
    return {name: each for name, each in values.items() if any(value != each[0] for value in each)}
