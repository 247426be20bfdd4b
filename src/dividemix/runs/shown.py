"""A run in a few words, as a small table for notebooks, and its epochs as flat records."""

import csv
import html
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dividemix.data.spreadsheet import as_field
from dividemix.errors import counted
from dividemix.judging.records import EpochRow

if TYPE_CHECKING:
    from dividemix.planning.material import Material
    from dividemix.runs.run import Run


def run_words(run: "Run") -> str:
    """The run in one line, such as Run('runs/toy-robust-seed1': robust, 15 of 15 epochs, test 81.20 %)."""
    words = [run.job.method, f"{run.state.epoch} of {run.job.settings.epochs} epochs"]
    if run.rows:
        last = run.rows[-1]
        if last["test_acc"] is not None:
            words.append(f"test {last['test_acc']:.2f} %")
        elif "val_acc" in last:
            words.append(f"held-out labels {last['val_acc']:.2f} %")
    if run.material.skipped:
        words.append(f"{len(run.material.skipped):,} skipped")
    if run.is_summarised and (found := run.summary().get("cautions")):
        words.append(counted(len(found), "caution"))
    return f"Run({str(run.directory.path)!r}: {', '.join(words)})"


def skipped_words(material: "Material", place: Path | None = None) -> str:
    """How many parts of the data were skipped, where they are listed, and why the first one was."""
    first, where = material.skipped[0], "" if place is None else f" (list: {place})"
    number, noun = len(material.skipped), "file or row" if material.given_kind == "images" else "row"
    amount = f"{number:,} {noun if number == 1 else noun.replace('file', 'files').replace('row', 'rows')}"
    used = f"{len(material.rows):,} {material.given_kind} are used"
    return f"skipped {amount}, {used}{where}. The first: {first.path}: {first.reason}"


def flags_words(is_flagged: NDArray[np.bool_], is_wrong: NDArray[np.bool_]) -> str:
    """How many flagged labels are wrong and how many wrong ones are not flagged, both (N,), if that is known."""
    num_found, num_flagged = int((is_flagged & is_wrong).sum()), int(is_flagged.sum())
    flagged = f"{num_found:,} of {num_flagged:,} flagged labels are really wrong" if num_flagged else "none is flagged"
    return f"true labels are known: {flagged}; {int(is_wrong.sum()) - num_found:,} wrong labels are not flagged"


def run_html(run: "Run") -> str:
    """The run as a table of a few lines. All text is escaped."""
    lines = "".join(
        f'<tr><th style="text-align:left">{html.escape(name)}</th>'
        f'<td style="text-align:left">{html.escape(value)}</td></tr>'
        for name, value in _facts(run)
    )
    return f"<table>{lines}</table>"


def _facts(run: "Run") -> Iterator[tuple[str, str]]:
    """What a person wants to know of a run first."""
    job, material = run.job, run.material
    yield "run", str(run.directory.path)
    yield "method", f"{job.method}, {job.settings.net_words}, seed {job.settings.seed}"
    yield "data", f"{job.title}: {len(material.labels):,} {material.given_kind} of {len(material.classes)} classes"
    if material.skipped:
        yield "skipped", skipped_words(material, run.directory.path / "skipped.csv")
    yield "epochs", f"{run.state.epoch} of {job.settings.epochs}"
    if not run.rows:
        return
    if run.kept_epoch:
        kept = run.rows[run.kept_epoch - 1]
        accuracy = run.summary().get("kept_acc") if run.finished else kept["test_acc"]
        if accuracy is not None:
            yield "test accuracy", f"{accuracy:.2f} % (epoch {run.kept_epoch})"
        if "val_acc" in kept:
            name = "validation accuracy" if kept.get("val_is_clean") else "accuracy on held-out labels"
            yield name, f"{kept['val_acc']:.2f} %"
    if run.finished:
        issues = run.label_issues()
        flagged = int(issues.is_label_issue.sum())
        yield "labels that look wrong", f"{flagged:,} of {len(issues.labels):,} ({issues.noise_rate:.1%})"
        for caution in run.summary().get("cautions", []):
            yield "caution", caution
        yield "report", str(run.directory.path / "report.html")


def flat_row(row: EpochRow) -> dict[str, Any]:
    """An epoch as one flat record: a value per network or division has its number at the end of the name."""
    flat: dict[str, Any] = {"epoch": row["epoch"], "phase": row["phase"], "seconds": row["seconds"]}
    for name, values in row["losses"].items():
        flat |= _numbered(name, values)
    flat |= row["figures"]
    flat["test_acc"] = row["test_acc"]
    flat |= _numbered("test_acc", row.get("test_acc_by_net", []))
    for name in ("test_top5", "val_acc", "num_val", "num_divided"):
        if name in row:
            flat[name] = row[name]  # type: ignore[literal-required]
    for name, scores in row.get("other_tests", {}).items():
        flat[f"{name}_acc"] = scores["acc"]
    flat |= _numbered("num_labeled", row.get("num_labeled", []))
    return flat | _numbered("clean_auc", row.get("clean_auc") or [])


def _numbered(name: str, values: Sequence[float]) -> dict[str, float]:
    return {f"{name}_{k}": value for k, value in enumerate(values, start=1)}


def metrics_csv(rows: Sequence[EpochRow]) -> str:
    """The text of metrics.csv: a line for each epoch; a value that was not measured is empty."""
    flat = [flat_row(row) for row in rows]
    text = io.StringIO()
    columns = list(dict.fromkeys(name for row in flat for name in row))
    writer = csv.DictWriter(text, columns, lineterminator="\n", restval="")
    writer.writerow({name: as_field(name) for name in columns})
    for row in flat:
        writer.writerow({name: f"{value:.6g}" if isinstance(value, float) else value for name, value in row.items()})
    return text.getvalue()
