"""Runs side by side, against the files in their directories."""

import json
from pathlib import Path

import pytest
from toys import toy_job, trained

from dividemix.errors import InputError
from dividemix.runs.comparison import CURVES, compare
from dividemix.runs.run import Run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two finished runs that differ in method, and one that is not finished."""
    folder = tmp_path_factory.mktemp("runs")
    trained(folder / "a", toy_job(folder, holdout=0.2))
    trained(folder / "b", toy_job(folder, method="cross_entropy", epochs=3))
    trained(folder / "c", toy_job(folder, seed=2), num_epochs=2)
    return folder


def test_settings_that_differ_and_no_others(folder: Path) -> None:
    compared = compare([folder / name for name in "abc"])
    settings = compared["settings"]
    assert settings["method"] == ["dividemix", "cross_entropy", "dividemix"]
    assert settings["epochs"] == [4, 3, 4]
    assert settings["seed"] == [1, 1, 2]
    assert settings["holdout"] == [0.2, 0.0, 0.0]
    assert settings["warmup_epochs"] == [2, None, 2]
    assert not {"lr", "net", "noise", "data"} & settings.keys()


def test_results_and_curves_are_those_of_the_files(folder: Path) -> None:
    a, b, c = compare([folder / name for name in "abc"])["runs"]
    summary = json.loads((folder / "a" / "summary.json").read_text())
    rows = [json.loads(line) for line in (folder / "a" / "metrics.jsonl").read_text().splitlines()]
    assert [run["letter"] for run in (a, b, c)] == ["A", "B", "C"]
    assert (a["kept_acc"], a["val_acc"], a["clean_auc"]) == tuple(
        summary[name] for name in ("kept_acc", "kept_val_acc", "clean_auc")
    )
    assert a["seconds"] == pytest.approx(summary["seconds"])
    assert a["true_noise"] == summary["noise"]["true"]
    assert a["curves"]["test_acc"] == [(row["epoch"], row["test_acc"]) for row in rows]
    mixed = [row for row in rows if "num_labeled" in row]
    kept = [(row["epoch"], 100 * sum(row["num_labeled"]) / 2 / row["num_divided"]) for row in mixed]
    assert a["curves"]["labels_kept"] == kept
    assert a["curves"]["loss"][0][1] == pytest.approx(sum(rows[0]["losses"]["loss"]) / 2)
    assert set(a["curves"]) <= CURVES.keys()
    lines = (folder / "b" / "label_issues.csv").read_text().splitlines()[1:]
    assert b["num_flagged"] == sum(line.split(",")[2] == "True" for line in lines)
    assert "val_acc" not in b["curves"]
    assert (c["finished"], c["num_epochs"], c.get("noise_rate")) == (False, 2, None)


def test_only_finished_runs_have_label_issues_to_compare(folder: Path) -> None:
    compared = compare([folder / name for name in "abc"])
    assert [(pair["first"], pair["second"]) for pair in compared["pairs"]] == [("A", "B")]
    assert compared["pairs"][0]["agreement"]["num_same_label"] == 40  # the same noise: all samples
    assert sum(compared["flagged_by"]) == 40
    json.dumps(compared, allow_nan=False)


def test_wrong_runs_are_one_line_each(folder: Path, tmp_path: Path) -> None:
    for paths, message in [
        ([folder / "a"], "takes 2 to 26 runs, 1 given: name more"),
        (
            [folder / "a", folder / "b" / ".." / "a"],
            "a: the same run is named 2 times: name another to compare it with",
        ),
        ([folder / "a", tmp_path], "not a run directory"),
    ]:
        with pytest.raises(InputError, match=message):
            compare(paths)


def test_code_that_a_run_names_is_not_imported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Comparing needs the names alone."""
    config = folder / "b" / "config.yaml"
    before = config.read_text()
    config.write_text(before.replace("method: cross_entropy", "method: their_code:OBJECT"))
    try:
        assert compare([folder / "a", folder / "b"])["runs"][1]["method"] == "their_code:OBJECT"
        with pytest.raises(InputError, match="would be run"):
            Run.load(folder / "b")
    finally:
        config.write_text(before)
