"""What a finished run hands over. Oracles: the run's own predictions, and cleanlab where it is installed."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from cleanlab.rank import get_label_quality_scores
from toys import NUM_CLASSES, NUM_TRAIN, toy_job, trained

from dividemix.report.of_run import write_report
from dividemix.runs.run import Run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return trained(tmp_path / "run", toy_job(tmp_path, noise="symmetric:0.3", holdout=0.2))


def test_the_lines_of_both_files_are_of_the_same_samples(run: Run) -> None:
    folder = run.directory.path
    rows = list(csv.DictReader((folder / "label_issues.csv").open(encoding="utf-8")))
    probs = np.load(folder / "pred_probs.npy")
    assert probs.shape == (NUM_TRAIN, NUM_CLASSES)
    assert sorted(int(row["index"]) for row in rows) == list(range(NUM_TRAIN))
    for row, line in zip(rows, probs, strict=True):
        assert float(row["label_score"]) == pytest.approx(line[int(row["given_label"])], rel=1e-4)
        assert line.argmax() == int(row["predicted_label"])


def test_cleanlab_takes_them_as_they_are(run: Run) -> None:
    folder = run.directory.path
    rows = list(csv.DictReader((folder / "label_issues.csv").open(encoding="utf-8")))
    labels = np.array([int(row["given_label"]) for row in rows])
    scores = get_label_quality_scores(labels, np.load(folder / "pred_probs.npy"))
    np.testing.assert_allclose(scores, [float(row["label_score"]) for row in rows], rtol=1e-4)


def test_the_kept_epoch_is_the_last_within_an_error_of_the_best_on_held_out_labels(run: Run) -> None:
    mixed = [row for row in run.rows if row["phase"] == "mix"]
    best = max(row["val_acc"] for row in mixed) / 100
    error = (best * (1 - best) / 8) ** 0.5  # of a share of the 8 samples held out
    assert run.kept_epoch == max(row["epoch"] for row in mixed if row["val_acc"] / 100 >= best - error)
    summary = json.loads((run.directory.path / "summary.json").read_text())
    assert summary["kept_epoch"] == run.kept_epoch
    assert summary["kept_acc"] == run.rows[run.kept_epoch - 1]["test_acc"]
    assert summary["kept_val_acc"] == run.rows[run.kept_epoch - 1]["val_acc"]


def test_the_model_is_that_of_the_kept_epoch(run: Run) -> None:
    assert run.material.test is not None
    pixels = run.material.test.pixels(np.arange(len(run.material.test.labels)))
    predicted = run.predict_proba(pixels).argmax(axis=1)
    accuracy = 100 * np.mean(predicted == run.material.test.labels.numpy())
    assert accuracy == pytest.approx(run.rows[run.kept_epoch - 1]["test_acc"])


def test_a_finished_run_writes_the_same_again(run: Run) -> None:
    """What a process that died before the end had not written, the next one does."""
    names = ("label_issues.csv", "pred_probs.npy", "report.html", "summary.json")
    before = {name: (run.directory.path / name).read_bytes() for name in names}
    for name in names:
        (run.directory.path / name).unlink()
    again = Run.load(run.directory.path)
    assert list(again.epochs()) == []
    write_report(again)
    assert {name: (run.directory.path / name).read_bytes() for name in names} == before
