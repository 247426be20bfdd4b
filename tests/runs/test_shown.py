"""A run in a notebook: short, safe, and with the figures of its files."""

import csv
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from toys import epoch_row, toy_arrays, toy_job, trained

import dividemix
from dividemix.runs.run import Run
from dividemix.runs.shown import flags_words, flat_row, metrics_csv


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("runs")
    return trained(folder / "<b>run", toy_job(folder, holdout=0.2))


def test_the_repr_is_one_short_line(run: Run) -> None:
    """It once had 31,000 characters."""
    line = repr(run)
    assert line.startswith("Run('")
    assert line.endswith(f"<b>run': dividemix, 4 of 4 epochs, test {run.rows[-1]['test_acc']:.2f} %, 1 caution)")
    assert len(run.summary()["cautions"]) == 1
    assert len(line) < 300
    assert repr(run.label_issues()).startswith("LabelIssues(40 samples, ")
    assert len(repr(run.label_issues())) < 60


def test_a_notebook_shows_the_summary_and_no_markup_of_a_name(run: Run) -> None:
    shown = run._repr_html_()
    kept, issues = run.rows[run.kept_epoch - 1], run.label_issues()
    assert f"{kept['test_acc']:.2f} % (epoch {run.kept_epoch})" in shown
    assert f"{int(issues.is_label_issue.sum())} of 40 ({issues.noise_rate:.1%})" in shown
    assert "accuracy on held-out labels" in shown
    assert "&lt;b&gt;run" in shown
    assert "<b>" not in shown


def test_a_run_without_an_epoch_is_shown(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", toy_job(tmp_path))
    assert "0 of 4 epochs" in repr(run)
    assert "0 of 4" in run._repr_html_()
    assert run.metrics == []


def test_classes_and_predictions_have_names(run: Run) -> None:
    images = toy_arrays()["x_test"]
    assert run.classes == ("0", "1", "2", "3")
    probs = run.predict_proba(images)
    assert run.predict(images).tolist() == [run.classes[k] for k in probs.argmax(axis=1)]


def test_one_image_or_one_path_is_a_list_of_one(run: Run, tmp_path: Path) -> None:
    image = toy_arrays()["x_test"][3]
    expected = run.predict_proba(image[np.newaxis])
    Image.fromarray(image).save(tmp_path / "one.png")
    path = tmp_path / "one.png"
    ones: list[Any] = [image, image[..., np.newaxis], path, str(path), path.read_bytes(), Image.fromarray(image)]
    for one in ones:
        assert run.predict_proba(one) == pytest.approx(expected, abs=1e-6)
        assert run.predict(one).shape == (1,)


def test_a_flat_record_has_every_number_once() -> None:
    row = epoch_row(
        3,
        losses={"loss_x": [0.5, 0.25]},
        figures={"lambda_u": 7.0},
        test_acc=50.0,
        test_acc_by_net=[40.0, 45.0],
        val_acc=60.0,
        num_val=9,
        num_labeled=[3, 4],
        num_divided=8,
        clean_auc=[0.5, 0.75],
        other_tests={"ilsvrc12": {"acc": 33.0, "acc_by_net": [30.0, 31.0]}},
    )
    assert flat_row(row) == {
        **{"epoch": 3, "phase": "mix", "seconds": 0.0, "loss_x_1": 0.5, "loss_x_2": 0.25, "lambda_u": 7.0},
        **{"test_acc": 50.0, "test_acc_1": 40.0, "test_acc_2": 45.0, "val_acc": 60.0, "num_val": 9, "num_divided": 8},
        **{"ilsvrc12_acc": 33.0, "num_labeled_1": 3, "num_labeled_2": 4, "clean_auc_1": 0.5, "clean_auc_2": 0.75},
    }


def test_metrics_csv_has_the_columns_of_all_epochs_and_gaps_where_nothing_was_measured() -> None:
    text = metrics_csv([epoch_row(1, losses={"loss": [2.0]}), epoch_row(2, losses={"loss_x": [1 / 3]}, test_acc=5.0)])
    assert text == ("epoch,phase,seconds,loss_1,test_acc,loss_x_1\n1,mix,0,2,,\n2,mix,0,,5,0.333333\n")


def test_the_tables_of_a_run_are_its_metrics_and_its_issues(run: Run) -> None:
    path, issues = run.directory.path, run.label_issues()
    with (path / "metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["test_acc"]) for row in rows] == pytest.approx([row["test_acc"] for row in run.rows], rel=1e-5)
    with (path / "noise_matrix.csv").open(newline="") as file:
        matrix = list(csv.DictReader(file))
    believed = np.where(issues.is_label_issue, issues.predicted, issues.labels)
    for given, line in enumerate(matrix):
        counts = [int(np.sum((issues.labels == given) & (believed == k))) for k in range(4)]
        assert [int(line[name]) for name in run.classes] == counts
        assert line["given_label"] == run.classes[given]
    by_class = json.loads((path / "summary.json").read_text())["class_noise"]
    for k, name in enumerate(run.classes):
        assert by_class[name] == pytest.approx(float(issues.is_label_issue[issues.labels == k].mean()))


def test_issues_become_a_data_frame(run: Run) -> None:
    pd = pytest.importorskip("pandas")
    frame = run.label_issues().to_pandas()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame["index"]) == [row["index"] for row in run.label_issues().rows()]
    epochs = pd.DataFrame(run.metrics)
    assert len(epochs) == 4
    with (run.directory.path / "metrics.csv").open(newline="") as file:
        assert set(csv.DictReader(file).fieldnames or ()) == set(epochs.columns)


def test_a_missing_pandas_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(dividemix.InputError, match="pip install pandas"):
        run.label_issues().to_pandas()


def test_the_package_shows_its_names() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        names = dir(dividemix)
    assert {"train", "find_label_issues", "Run", "Model", "DivideMixClassifier", "__version__"} <= set(names)
    assert not [name for name in names if name.startswith("_") and not name.startswith("__")]
    assert "importlib" not in names


def test_true_labels_tell_which_flags_are_right() -> None:
    is_wrong = np.array([True, True, False, True])
    told = "true labels are known: 1 of 2 flagged labels are really wrong; 2 wrong labels are not flagged"
    assert flags_words(np.array([True, False, True, False]), is_wrong) == told
    told = "true labels are known: none is flagged; 3 wrong labels are not flagged"
    assert flags_words(np.zeros(4, dtype=np.bool_), is_wrong) == told
