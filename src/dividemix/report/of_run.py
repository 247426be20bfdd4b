"""The page of a finished run: report.html in its directory."""

import shlex
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dividemix import atomic
from dividemix.data.builtin import BUILT_IN
from dividemix.data.images import ImageLike
from dividemix.data.originals import originals
from dividemix.data.table_rows import is_numeric
from dividemix.errors import InputError, counted, is_refusal
from dividemix.judging.records import EpochRow, RunSummary
from dividemix.planning.job import JOB_FIELDS, Job
from dividemix.planning.material import Material
from dividemix.report import shown
from dividemix.report.content import PageContent, can_add_classes, expected_words
from dividemix.report.data_map import data_map
from dividemix.report.marked_words import Span, marked_words
from dividemix.report.page import render
from dividemix.report.payload import MAX_SHOWN_BYTES, MAX_SUSPECTS
from dividemix.report.pictures import Pictures, SameImages, matched
from dividemix.report.row_cells import RowCells
from dividemix.runs.run import Run

_TIMED = 6  # pictures that are made to foresee how long all take
_QUICK, _SLOW = (200, 60), (40, 20)  # texts whose words are marked, and parts of each
_CORRECTED = (".csv", ".tsv", ".parquet", ".json", ".npz")  # files that dividemix relabel can correct
_CORRECTED_TEXTS = (".csv", ".tsv")  # if their samples are texts


def write_report(run: Run) -> Path:
    """Write report.html of a finished run and return its path.

    Raises:
        InputError: if the run is not finished.
    """
    if not run.finished:
        raise InputError(f"{run.directory.path}: the run is not finished; train it to its end first")
    folder, texts, rows = run.directory.path, run.material.texts, run.material.table
    if rows is not None:
        content = render(page_content(run), RowCells.of(rows, run.material.labels).shown)
    elif texts is not None:
        marks = _marks(run, texts)
        content = render(page_content(run), lambda i: shown.text(texts[i], marks.get(i, ())))
    else:
        pictures = _pictures(run)
        content = render(page_content(run), lambda i: shown.image(pictures.small(i), pictures.link(i, folder)))
    atomic.write_text(folder / "report.html", content)
    return folder / "report.html"


def page_seconds(run: Run) -> float:
    """How long the pictures of the page will take, from making a few of them; 0 for samples without pictures."""
    if run.material.given_kind != "images":
        return 0.0
    began = time.perf_counter()
    pictures = _pictures(run)
    listed = time.perf_counter()
    num_samples = len(run.material.labels)
    some = [shown.image(pictures.small(i)) for i in range(0, num_samples, -(-num_samples // _TIMED))]
    each = (time.perf_counter() - listed) / len(some)
    num_bytes = sum(len(one["small"]) for one in some if one) / len(some)
    num_shown = min(num_samples, MAX_SUSPECTS, MAX_SHOWN_BYTES / max(num_bytes, 1.0))
    return listed - began + num_shown * each


def _marks(run: Run, texts: Sequence[str]) -> dict[int, list[Span]]:
    """The words that matter in the texts of the most suspicious labels; fewer texts if an encoder is slow."""
    assert run.material.encoding is not None
    num_texts, most_parts = _QUICK if run.material.encoding.fitted is not None else _SLOW
    issues = run.label_issues()
    index = issues.order[:num_texts][issues.is_label_issue[issues.order[:num_texts]]]
    found = marked_words(
        [texts[i] for i in index.tolist()],
        issues.labels[index],
        issues.predicted[index],
        run.predict_proba,
        most_parts=most_parts,
    )
    return dict(zip(index.tolist(), found, strict=True))


def _pictures(run: Run) -> Pictures:
    """The pictures of the run's samples."""
    everything, material = run.material.everything, run.material

    def pixels(i: int) -> NDArray[np.uint8]:
        image: NDArray[np.uint8] = everything.pixels(np.array([i]))[0]
        return image

    files: Mapping[int, ImageLike] = {}
    try:
        found = originals(run.job.values())
    except (InputError, OSError) as error:  # the data is gone: the pixels that were trained on are still known
        if is_refusal(error) or is_refusal(error.__cause__):
            raise
        return Pictures(files, pixels)
    files = matched(found, material.rows, material.paths)
    if found is None and material.paths is not None and material.kind == "images":
        files = SameImages(material.paths, pixels)
    return Pictures(files, pixels)


def page_content(run: Run) -> PageContent:
    """The run as the page shows it."""
    job, material, rows, summary = run.job, run.material, run.rows, run.summary()
    issues = run.label_issues()
    histograms = [
        {"epoch": row["epoch"], "net": k} | histogram
        for row in rows
        for k, histogram in enumerate(row.get("loss_histograms", ()))
    ]
    return PageContent(
        title=job.title,
        facts=_facts(material, summary),
        choices=[(choice["name"], str(choice["value"]), choice["reason"]) for choice in summary["choices"]],
        rows=[_epoch(row, summary) for row in rows],
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
        can_add_classes=can_add_classes(job.data),
        true_labels=material.true_labels,
        kept_epoch=summary["kept_epoch"],
        num_skipped=len(material.skipped),
        expected=expected_words(summary["expected"]) if "expected" in summary else "",
        cautions=summary.get("cautions", ()),
        map=None if material.space is None else data_map(material.space.cpu().numpy(), issues.is_label_issue),
        apply=_apply(job),
    )


def _apply(job: Job) -> str | None:
    """The command that applies corrections.csv to the data; None for data that it cannot correct."""
    suffixes = _CORRECTED if job.text_column is None else _CORRECTED_TEXTS
    if job.data in BUILT_IN or not (Path(job.data).is_dir() or Path(job.data).suffix.lower() in suffixes):
        return None
    words = ["dividemix", "relabel", job.data, "corrections.csv"]
    for name in ("path_column", "label_column", "text_column", "target", "key"):
        if getattr(job, name) != JOB_FIELDS[name].default:
            words += [f"--{name}", getattr(job, name)]
    return shlex.join(words)


def _epoch(row: EpochRow, summary: RunSummary) -> dict[str, Any]:
    """An epoch as the page shows it; the kept one with its test, though no other may be tested."""
    epoch: dict[str, Any] = {**row, **row["figures"]}
    if row["epoch"] == summary["kept_epoch"] and "kept_acc" in summary:
        epoch["test_acc"] = summary["kept_acc"]
    return epoch


def _facts(material: Material, summary: RunSummary) -> list[tuple[str, str]]:
    """What was trained, and the results: pairs of a name and a value."""
    facts = [
        ("Classes", str(len(material.classes))),
        _samples_fact(material),
        ("Method", f"{summary['method']}, {counted(summary['epochs'], 'epoch')}, seed {summary['seed']}"),
    ]
    if material.test is not None:
        amount = f"{len(material.test.labels):,} {material.given_kind}"
        facts.append(("Test accuracy", f"{summary['kept_acc']:.2f} % ({amount})"))
    if material.noise is not None:
        facts.append(
            ("Noise that was added", f"{summary['noise']['spec']}: {material.noise.true_rate:.1%} of labels corrupted")
        )
    if material.skipped:
        facts.append(("Skipped", f"{counted(len(material.skipped), 'file')}, listed in skipped.csv"))
    return facts


def _samples_fact(material: Material) -> tuple[str, str]:
    """What the samples are: the size of the images, or of the vectors."""
    if material.texts is not None and material.encoding is not None:
        return (
            "Texts",
            f"{len(material.texts):,}, as vectors of {material.shape[0]:,} numbers by {material.encoding.encoder}",
        )
    if material.table is not None:
        names = material.table.dtype.names or ()
        numeric = sum(is_numeric(material.table, name) for name in names)
        return "Rows", f"{len(material.table):,} with {numeric} numeric and {len(names) - numeric} categorical columns"
    if material.kind == "vectors":
        encoder = f", by {material.encoding.encoder}" if material.encoding else ""
        return "Vectors", f"{material.shape[0]:,} numbers each{encoder}"
    height, width, channels = material.shape
    return "Images", f"{height} x {width} pixels, {'grey' if channels == 1 else 'colour'}"
