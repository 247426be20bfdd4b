"""Text in data files that cannot be written, and text that a spreadsheet program would run."""

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_model import save_images, small_images, small_model
from toys import save_toy
from workshop import QUICK, fail

from dividemix.cli import main
from dividemix.data.readers.npz import read_npz
from dividemix.data.source import Skipped
from dividemix.data.spreadsheet import as_field, from_field
from dividemix.errors import InputError
from dividemix.judging.label_issues import find_issues
from dividemix.methods.method import Judgement
from dividemix.relabel.corrections import read_corrections
from dividemix.runs.directory import RunDirectory

HALF = "b\ud800"  # half a pair of surrogates
NAMES = np.array(["a", HALF, "c", "d"])
BEYOND = np.array([0x110000], dtype=np.uint32).view("U1")  # a number that no character has


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("classes", {"classes": NAMES}),
        ("y_train", {"y_train": NAMES[np.arange(40) % 4], "y_test": NAMES[np.arange(12) % 4]}),
        ("y_test", {"y_train": np.array(list("abcd"))[np.arange(40) % 4], "y_test": NAMES[np.arange(12) % 4]}),
        ("paths", {"paths": NAMES[np.arange(40) % 4]}),
        ("paths", {"paths": BEYOND.repeat(40)}),
        ("classes", {"classes": np.concatenate([BEYOND, NAMES[[0, 2, 3]]])}),
    ],
)
def test_text_that_no_file_can_store_is_refused_when_it_is_read(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    changes: dict[str, Any],
) -> None:
    """Row 10: a traceback after the whole training; label_issues.csv and the page were never written."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=f"{name}: has text that is not valid Unicode"):
        read_npz(save_toy(tmp_path, **changes))
    assert f"toy.npz: {name}: has text that is not valid Unicode" in fail(capsys, ["train", *QUICK])


def test_half_a_character_is_no_name_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The laboratory found it: a traceback after the data was read."""
    monkeypatch.chdir(tmp_path)
    words = ["train", str(save_toy(tmp_path)), *QUICK[1:], "--out", HALF]
    assert "out is 'b\\ud800': it must be a path" in fail(capsys, words)


def test_text_of_all_planes_is_read(tmp_path: Path) -> None:
    """Row 10: what is valid stays so."""
    names = ("é", "日本", "🐝", "d")
    assert read_npz(save_toy(tmp_path, classes=np.array(names))).classes == names


FORMULAS = ("=cmd()", "+cmd()", "-cmd()", "@SUM(A1)", "\t=1", "\r=1", "'=1", "''@x", "-1+cmd()", "=1")
PLAIN = ("", "-1", "+1", "-0.5", "a=b", "'", "'quoted'", "'-1", "1-2", "cat", "a-b.png")


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_is_written_with_an_apostrophe_and_read_without(text: str) -> None:
    """Row 11: =cmd() in class names and paths went into CSV files as it is."""
    assert as_field(text) == f"'{text}"
    assert from_field(as_field(text)) == text


@pytest.mark.parametrize("text", PLAIN)
def test_other_text_is_written_as_it_is(text: str) -> None:
    """Row 11: among it the labels -1 and +1."""
    assert as_field(text) == from_field(text) == text


@given(st.text("'=+-@\t\r01.a", max_size=8))
def test_what_is_written_can_always_be_read(text: str) -> None:
    """Row 11: and a field never begins with a formula."""
    assert from_field(as_field(text)) == text
    assert as_field(text)[:1] not in ("=", "@", "\t", "\r")


def test_label_issues_run_nothing() -> None:
    """Row 11: classes and paths of label_issues.csv."""
    import torch

    judgement = Judgement(
        pred_probs=torch.tensor([[0.9, 0.1], [0.2, 0.8]]),
        losses=torch.tensor([[0.1, 0.2]], dtype=torch.float64),
        clean_prob=torch.tensor([[0.9, 0.8]], dtype=torch.float64),
    )
    labels = np.array([0, 1])
    issues = find_issues(judgement, labels, classes=("=cmd()", "-1"), paths=("@x.png", "-y.png"))
    rows = list(csv.DictReader(io.StringIO(issues.to_csv())))
    assert {(row["path"], row["given_label"]) for row in rows} == {("'@x.png", "'=cmd()"), ("'-y.png", "-1")}
    assert {row["path"] for row in issues.rows()} == {"@x.png", "-y.png"}  # from Python, as they are


def test_predictions_run_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Row 11: classes and paths of the table that `predict` writes."""
    monkeypatch.chdir(tmp_path)
    model = small_model()
    model.classes = ("=a()", "@b", "+c")
    model.save_pretrained("model")
    save_images(tmp_path, small_images(1), ["=x.png"])
    assert main(["predict", "model", "=x.png"]) == 0
    _, row = csv.reader(io.StringIO(capsys.readouterr().out))
    assert row[0] == "'=x.png"
    assert row[1] in ("'=a()", "'@b", "'+c")


def test_skipped_files_run_nothing(tmp_path: Path) -> None:
    """Row 11: and come back as they were."""
    skipped = (Skipped("=cmd().png", "-no such file"), Skipped("'=x", "empty"))
    RunDirectory(tmp_path).write_skipped(skipped)
    assert "\n=" not in (tmp_path / "skipped.csv").read_text()
    assert RunDirectory(tmp_path).read_skipped() == skipped


def test_corrections_are_read_as_the_page_meant_them(tmp_path: Path) -> None:
    """Row 11: relabel takes off the apostrophe that the page puts before a formula."""
    path = tmp_path / "corrections.csv"
    path.write_text("index,path,given_label,new_label,action\n0,'=x.png,'=cmd(),-1,choose\n1,'y.png,a,'''@b,accept\n")
    first, second = read_corrections(path)
    assert (first.path, first.given_label, first.new_label) == ("=x.png", "=cmd()", "-1")
    assert (second.path, second.new_label) == ("'y.png", "''@b")
