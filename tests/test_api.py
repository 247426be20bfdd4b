"""The package from Python. Oracles: the command line's run of the same data, and labels that are known to be wrong."""

import csv
import html
import io
import json
import re
import shutil
import warnings
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
import torch
from PIL import Image
from toys import NUM_CLASSES, SETTINGS, save_toy, toy_arrays

import dividemix
from dividemix import InputError, Job, Run, find_label_issues, train
from dividemix.errors import CautionWarning, SkippedSamplesWarning
from dividemix.judging.label_issues import LabelIssues
from dividemix.planning.presets import preset_settings, preset_values
from dividemix.report.of_run import write_report

_WARNINGS = (CautionWarning, SkippedSamplesWarning)
QUICK: dict[str, Any] = {**SETTINGS, "progress": False}


@pytest.fixture(autouse=True)
def _workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_file_and_its_arrays_train_the_same_model(tmp_path: Path) -> None:
    arrays = toy_arrays()
    names = np.array([f"class {label}" for label in range(NUM_CLASSES)])
    path = save_toy(tmp_path, classes=names)
    by_file = train(path, out="file", **QUICK)
    by_arrays = train(
        arrays["x_train"],
        names[arrays["y_train"]],
        test=arrays["x_test"],
        test_labels=names[arrays["y_test"]],
        out="arrays",
        **QUICK,
    )
    assert by_arrays.rows[-1]["losses"]["loss_x"] == by_file.rows[-1]["losses"]["loss_x"]
    assert by_arrays.summary()["final_acc"] == by_file.summary()["final_acc"]


def test_a_run_from_arrays_loads_from_its_directory_alone(tmp_path: Path) -> None:
    arrays = toy_arrays()
    run = train(arrays["x_train"], arrays["y_train"], out="run", **QUICK)
    (tmp_path / "run").rename(tmp_path / "moved")
    loaded = Run.load("moved")
    assert loaded.finished
    issues, again = run.label_issues(), loaded.label_issues()
    np.testing.assert_array_equal(again.pred_probs, issues.pred_probs)
    np.testing.assert_array_equal(again.labels, arrays["y_train"])
    np.testing.assert_allclose(loaded.predict_proba(arrays["x_train"]), issues.pred_probs, atol=1e-6)
    assert write_report(loaded).read_text(encoding="utf-8").startswith("<!doctype html>")


def test_the_default_directory_is_new_each_time() -> None:
    arrays = toy_arrays()
    for name in ("data-robust-seed1", "data-robust-seed1-2"):
        run = train(arrays["x_train"], arrays["y_train"], **QUICK)
        assert run.directory.path.name == name
        assert json.loads((run.directory.path / "summary.json").read_text())["choices"] != []


@pytest.mark.slow
def test_wrong_labels_are_found() -> None:
    """A tenth of 200 labels is moved to another class: most of the worst are truly wrong, and the mask agrees."""
    rng = np.random.default_rng(1)
    true = np.arange(200) % NUM_CLASSES
    images = rng.integers(0, 120, (200, 8, 8), dtype=np.uint8)
    for image, label in zip(images, true, strict=True):
        row, column = 4 * (label // 2), 4 * (label % 2)
        image[row : row + 4, column : column + 4] += 100
    wrong = rng.permutation(200)[:20]
    labels = true.copy()
    labels[wrong] = (labels[wrong] + 1) % NUM_CLASSES
    settings = QUICK | {"net_width": 8, "epochs": 8, "warmup_epochs": 4, "lr": 0.05, "flip": False}
    worst = find_label_issues(images, labels, return_indices_ranked_by_score=True, **settings)
    mask = find_label_issues(images, labels, **settings)
    assert np.isin(worst[:10], wrong).all()
    assert np.isin(wrong, worst).mean() > 0.9
    np.testing.assert_array_equal(np.sort(worst), np.flatnonzero(mask))


@pytest.fixture
def files(tmp_path: Path) -> tuple[list[str], list[int]]:
    """The toy images as files, one of them damaged and one missing, and their labels."""
    arrays = toy_arrays()
    for number, image in enumerate(arrays["x_train"]):
        Image.fromarray(image).save(tmp_path / f"{number}.png")
    (tmp_path / "1.png").write_bytes(b"bad")
    (tmp_path / "7.png").unlink()
    return [str(tmp_path / f"{number}.png") for number in range(40)], arrays["y_train"].tolist()


@pytest.mark.slow
def test_what_is_found_counts_the_samples_as_they_were_given(
    files: tuple[list[str], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every used sample is made to look wrong: the mask has all inputs, and is true but for those that were skipped."""
    paths, labels = files
    monkeypatch.setattr("dividemix.judging.label_issues.LabelIssues.is_label_issue", everything_is_wrong)
    used = [number for number in range(40) if number not in (1, 7)]
    mask = find_label_issues(paths, labels, **QUICK)
    assert np.flatnonzero(mask).tolist() == used
    assert mask.shape == (40,)
    ranked = find_label_issues(paths, labels, return_indices_ranked_by_score=True, **QUICK)
    assert sorted(ranked.tolist()) == used
    limited = find_label_issues(paths, labels, limit_train=8, **QUICK)
    assert np.flatnonzero(limited).tolist() == [0, 2, 3, 4, 5, 6, 9, 11]  # two of each class 0, 1, 2, 3 in turn
    assert limited.shape == (40,)


@property  # type: ignore[misc]
def everything_is_wrong(issues: LabelIssues) -> Any:
    return np.ones(len(issues.labels), dtype=np.bool_)


@pytest.mark.parametrize("as_table", [True, False])
def test_what_a_run_leaves_has_the_index_of_the_data_as_it_was_given(
    tmp_path: Path, files: tuple[list[str], list[int]], as_table: bool
) -> None:
    """In label_issues.csv, on the page, and in the run that is loaded again. A table can take new classes."""
    paths, labels = files
    if as_table:
        lines = [f"{number}.png,{label}\n" for number, label in enumerate(labels)]
        (tmp_path / "table.csv").write_text("path,label\n" + "".join(lines))
        paths = [f"{number}.png" for number in range(40)]
        run = train("table.csv", out="run", **QUICK)
    else:
        run = train(paths, labels, out="run", **QUICK)
    rows = list(csv.DictReader((tmp_path / "run" / "label_issues.csv").open(encoding="utf-8")))
    page = json.loads(
        re.findall(r'json" id="data">(.*?)</script>', (tmp_path / "run" / "report.html").read_text(encoding="utf-8"))[0]
    )
    for samples in (rows, page["suspects"]):
        assert len(samples) == 38
        assert [paths[int(sample["index"])] for sample in samples] == [sample["path"] for sample in samples]
    assert page["can_add_classes"] is as_table
    for place in (run, Run.load("run")):
        issues = place.label_issues()
        assert issues.sample_rows is not None
        assert issues.paths is not None
        assert [paths[row] for row in issues.sample_rows] == list(issues.paths)


def test_a_limit_holds_for_data_from_python_as_well() -> None:
    arrays = toy_arrays(y_train=np.repeat(np.arange(NUM_CLASSES), 10))
    run = train(arrays["x_train"], arrays["y_train"], limit_train=8, out="run", **QUICK)
    loaded = Run.load("run")
    for place in (run, loaded):
        assert len(place.material.labels) == 8
        assert place.material.rows.tolist() == [0, 1, 10, 11, 20, 21, 30, 31]
    with pytest.raises(InputError, match="limit_train is 3: must be at least 4"):
        train(arrays["x_train"], arrays["y_train"], limit_train=3, out="other", **QUICK)
    with pytest.raises(InputError, match="limit_train is '8'"):
        train(arrays["x_train"], arrays["y_train"], limit_train="8", out="other", **QUICK)


def test_a_limit_holds_for_the_test_images(tmp_path: Path) -> None:
    run = train(save_toy(tmp_path), limit_test=8, out="run", **QUICK)
    for place in (run, Run.load("run")):
        assert place.material.test is not None
        assert np.bincount(place.material.test.labels).tolist() == [2] * NUM_CLASSES
    assert len(run.test_probs()[0]) == 8


@pytest.mark.slow
def test_a_search_for_wrong_labels_writes_no_copy_of_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Images that exceed memory_gb can be searched for that reason, though not be kept."""
    arrays = toy_arrays()

    def refused(*_: object) -> NoReturn:
        raise AssertionError("data was written")

    monkeypatch.setattr("dividemix.runs.directory.RunDirectory.write_data", refused)
    with pytest.raises(InputError, match=r"the samples exceed memory_gb: .* keep_data=False"):
        train([Image.fromarray(image) for image in arrays["x_train"]], arrays["y_train"], memory_gb=0, **QUICK)
    assert find_label_issues(arrays["x_train"], arrays["y_train"], **QUICK).shape == (40,)
    pictures = [Image.fromarray(image) for image in arrays["x_train"]]
    assert find_label_issues(pictures, arrays["y_train"], memory_gb=0, **QUICK).shape == (40,)


@pytest.fixture
def broken() -> tuple[list[bytes], list[int]]:
    """Contents of image files, all of one grey and every fifth cut short, and labels that cannot be learned."""
    stream = io.BytesIO()
    Image.new("L", (8, 8), 90).save(stream, "PNG")
    contents = [stream.getvalue() if number % 5 else b"cut" for number in range(150)]
    return contents, [number % 3 for number in range(150)]


def test_what_was_skipped_and_what_to_doubt_is_a_warning(
    broken: tuple[list[bytes], list[int]], capsys: pytest.CaptureFixture[str]
) -> None:
    """And printed, with the settings that were chosen, if there is progress; oracle: summary.json."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = train(*broken, out="run", **QUICK | {"progress": True})
    printed = capsys.readouterr().out
    texts = {kind: [str(one.message) for one in caught if one.category is kind] for kind in _WARNINGS}
    summary = json.loads(Path("run", "summary.json").read_text(encoding="utf-8"))
    assert texts[CautionWarning] == summary["cautions"] != []
    [skipped] = texts[SkippedSamplesWarning]
    used = f"{len(run.material.rows)} images are used (list: {run.directory.path / 'skipped.csv'})"
    assert skipped.startswith(f"skipped 30 files or rows, {used}. The first: ")
    assert {one.filename for one in caught if one.category in _WARNINGS} == {__file__}
    assert f"warning: {skipped}" in printed.splitlines()
    assert any(line.startswith("  holdout ") for line in printed.splitlines())
    assert f", 30 skipped, {len(summary['cautions'])} caution" in repr(run)
    shown = run._repr_html_()
    assert all(html.escape(text) in shown for text in (skipped, *summary["cautions"]))


def test_a_search_for_wrong_labels_warns_as_a_training_does(
    broken: tuple[list[bytes], list[int]], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.warns() as caught:
        find_label_issues(*broken, **QUICK)
    mine = [one for one in caught if one.category in _WARNINGS]
    assert {one.category for one in mine} == set(_WARNINGS)
    assert {one.filename for one in mine} == {__file__}
    assert not any("skipped.csv" in str(one.message) for one in mine)  # that file is gone
    assert capsys.readouterr().out == ""


def test_a_search_for_wrong_labels_does_no_work_for_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Oracle: the labels that a run with all its files flags, by an epoch before its last one."""
    rng, labels = np.random.default_rng(0), np.arange(90) % 3
    vectors = rng.normal(size=(90, 5)).astype(np.float32) + np.eye(3, 5, dtype=np.float32)[labels]
    for module in ("run", "kept", "checkpoints"):
        monkeypatch.setattr(f"dividemix.runs.{module}.best_epoch", lambda rows: min(len(rows), 2))
    given: dict[str, Any] = {"method": "robust", "epochs": 4, "holdout": 0.2, "device": "cpu", "progress": False}
    run = train(vectors, labels, out="run", **given)
    assert (run.kept_epoch, run.label_issues().odd is None) == (2, False)

    def refused(*_: object, **__: object) -> NoReturn:
        raise AssertionError("work for a file")

    names = ("runs.judged.find_odd_samples", "runs.run.save_best", "runs.run.write_results", "api.write_report")
    for name in (*names, "model.model.Model.save_pretrained", "display.write_report"):
        monkeypatch.setattr(f"dividemix.{name}", refused)
    for progress in (False, True):
        mask = find_label_issues(vectors, labels, **given | {"progress": progress})
        np.testing.assert_array_equal(mask, run.label_issues().is_label_issue)
    assert mask.any()


def test_a_run_predicts_what_it_was_trained_on() -> None:
    """As a tensor of floats with channels first, and as Pillow images."""
    arrays = toy_arrays()
    tensor = torch.from_numpy(arrays["x_train"])[:, None] / 255
    run = train(tensor, torch.from_numpy(arrays["y_train"]), out="run", **QUICK)
    expected = run.label_issues().pred_probs
    for form in (tensor, [Image.fromarray(image) for image in arrays["x_train"]]):
        np.testing.assert_allclose(run.predict_proba(form), expected, atol=1e-6)


def test_paths_are_settings_too(tmp_path: Path) -> None:
    path = save_toy(tmp_path, x_test=None, y_test=None)
    shutil.copy(path, "other.npz")  # the training data itself would be refused
    run = train(path, test=Path("other.npz"), out=Path("run"), **QUICK)
    assert run.job.test == "other.npz"
    assert Run.load("run").material.test is not None


def test_minutes_are_refused_where_the_command_line_refuses_them(tmp_path: Path) -> None:
    path = save_toy(tmp_path)
    for settings in ({"epochs": 3}, {"preset": "fashion"}):
        with pytest.raises(InputError, match="minutes cannot be used with"):
            train(path, minutes=5, **settings)
    with pytest.raises(InputError, match="minutes cannot be used with"):
        train("cifar10", minutes=5)


@pytest.mark.parametrize(
    ("data", "preset"), [("fashion", "fashion"), ("cifar10", "cifar10-sym-50"), ("toy.npz", "default")]
)
def test_data_has_the_preset_of_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: str, preset: str
) -> None:
    """Oracle: the presets' own fields, in the job that would be run."""
    save_toy(tmp_path)

    class Seen(Exception):  # noqa: N818
        pass

    def created(path: Path, job: Job, **_: object) -> NoReturn:
        raise Seen(job)

    monkeypatch.setattr(Run, "create", created)
    with pytest.raises(Seen) as seen:
        train(data)
    (job,) = seen.value.args
    fields = preset_values(preset) | ({"method": "robust_history"} if preset == "default" else {})
    assert {name: job.values()[name] for name in fields} == fields
    if preset == "default":  # the rest is chosen by the data
        assert job.settings.net == "small_vgg"
    else:
        assert job.settings == preset_settings(preset)


def test_a_setting_that_is_none_is_one_clear_error() -> None:
    arrays = toy_arrays()
    with pytest.raises(InputError, match="unknown setting 'epocs'"):
        train(arrays["x_train"], arrays["y_train"], epocs=3)
    with pytest.raises(InputError, match="labels"):
        train(arrays["x_train"], arrays["y_train"][:-1])


def test_every_public_name_is_there() -> None:
    for name in dividemix.__all__:
        assert getattr(dividemix, name) is not None


def test_a_run_that_exists_hides_no_other_mistake(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.yaml").write_text("data: toy.npz")
    data = save_toy(tmp_path)
    with pytest.raises(InputError, match=r"weights is 'nowhere\.pth': no such file"):
        dividemix.train(data, out=tmp_path / "run", weights="nowhere.pth")
    with pytest.raises(InputError, match="has a run already"):
        dividemix.train(data, out=tmp_path / "run")
