"""What a finished run hands over: label_issues.csv, pred_probs.npy and report.html."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dividemix import atomic
from dividemix.data.readers import READERS
from dividemix.judging.label_issues import LabelIssues
from dividemix.planning.job import Job
from dividemix.planning.material import Material
from dividemix.report.content import PageContent
from dividemix.report.page import render
from dividemix.report.thumbnails import encode
from dividemix.runs.directory import RunDirectory


def write(
    directory: RunDirectory,
    material: Material,
    issues: LabelIssues,
    summary: dict[str, Any],
    rows: Sequence[dict[str, Any]],
) -> None:
    """Write the three files. Row i of pred_probs.npy belongs to line i of label_issues.csv, worst first."""
    atomic.write_text(directory.path / "label_issues.csv", issues.to_csv())
    buffer = io.BytesIO()
    np.save(buffer, issues.pred_probs[issues.order])
    atomic.write_bytes(directory.path / "pred_probs.npy", buffer.getvalue())
    content = page_content(directory.read_job(), material, issues, summary, rows)
    page = render(content, lambda i: encode(material.everything.pixels(np.array([i]))[0]))
    atomic.write_text(directory.path / "report.html", page)


def page_content(
    job: Job,
    material: Material,
    issues: LabelIssues,
    summary: dict[str, Any],
    rows: Sequence[dict[str, Any]],
) -> PageContent:
    """The run as the page shows it."""
    histograms = [
        {"epoch": row["epoch"], "net": k} | histogram
        for row in rows
        for k, histogram in enumerate(row.get("loss_histograms", ()))
    ]
    return PageContent(
        title=job.title,
        facts=_facts(material, summary),
        choices=[(choice["name"], str(choice["value"]), choice["reason"]) for choice in summary["choices"]],
        rows=rows,
        divisions=histograms,
        classes=material.classes,
        labels=issues.labels,
        probs=issues.pred_probs,
        label_score=issues.label_score.astype(np.float64),
        is_issue=issues.is_label_issue,
        clean_prob=issues.clean_prob,
        losses=issues.losses,
        noise_rate=issues.noise_rate,
        noise_matrix=issues.noise_matrix,
        paths=material.paths,
        sample_rows=material.rows,
        # Their labels are numbers of classes, or can be.
        can_add_classes=job.data not in READERS and Path(job.data).suffix.lower() not in (".npz", ".parquet"),
        true_labels=material.true_labels,
        kept_epoch=summary["kept_epoch"],
        num_skipped=len(material.skipped),
    )


def _facts(material: Material, summary: dict[str, Any]) -> list[tuple[str, str]]:
    """What was trained and how well, a name and a value each."""
    height, width, channels = material.image_shape
    facts = [
        ("Classes", str(len(material.classes))),
        ("Images", f"{height} x {width} pixels, {'grey' if channels == 1 else 'colour'}"),
        ("Method", f"{summary['method']}, {summary['epochs']} epochs, seed {summary['seed']}"),
    ]
    if material.test is not None:
        facts.append(("Test accuracy", f"{summary['kept_acc']:.2f} % ({len(material.test.labels):,} images)"))
    if material.noise is not None:
        facts.append(("Noise that was added", f"{summary['noise']['spec']}: {material.noise.true_rate:.1%} wrong"))
    if material.skipped:
        facts.append(("Left out", f"{len(material.skipped):,} files, listed in skipped.csv"))
    return facts
