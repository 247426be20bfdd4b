"""Layouts of data that people have, from the command line: what is trained, and what is said about it."""

import csv
import json
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from toys import SETTINGS, toy_arrays
from workshop import fail, flags_of, succeed

import dividemix
from dividemix.cli import main
from dividemix.runs.run import Run

pytestmark = pytest.mark.usefixtures("workshop")

QUICK = [*flags_of(SETTINGS | {"epochs": 2, "warmup_epochs": 1}), "--out", "run"]


def draw(path: str, number: int, mode: str = "L", side: int = 8) -> None:
    """A picture that depends on the number alone."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    levels = np.random.default_rng(number).integers(0, 256, (side, side), dtype=np.uint8)
    Image.fromarray(levels).convert(mode).save(path)


def summary() -> Any:
    return json.loads(Path("run/summary.json").read_text())


def test_a_table_in_a_project_and_images_elsewhere() -> None:
    for number in range(8):
        draw(f"disk/{number}.png", number)
    Path("project").mkdir()
    rows = [f"{number}.png,{'ab'[number % 2]}\n" for number in range(8)]
    Path("project/labels.csv").write_text("path,label\n" + "".join(rows))
    succeed("project/labels.csv", "--image_root", "disk", *QUICK)
    assert summary()["num_skipped"] == 0
    Path("disk").rename("moved")
    assert main(["train", "--resume", "--out", "run", "--image_root", "moved"]) == 0


def test_an_image_root_for_a_folder_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    draw("photos/a/1.png", 1)
    draw("photos/b/1.png", 2)
    assert "image_root photos has no meaning for photos" in fail(
        capsys, ["train", "photos", "--image_root", "photos", *QUICK]
    )


def test_the_folder_above_is_not_trained_on(capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(4):
        draw(f"photos/{'ab'[number % 2]}/{number}.png", number)
    assert fail(capsys, ["train", ".", *QUICK]).endswith("seem to be the classes: give photos as data\n")


def test_what_a_few_odd_images_cause_is_said_and_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(120):
        draw(f"photos/{'ab'[number % 2]}/{number}.png", number, "RGB" if number == 7 else "L", 9 if number == 8 else 8)
    succeed("photos", *QUICK)
    notes = [
        "grey images: 119 of 120 are; 1 colour image is converted to grey",
        "8 x 8 pixels: 119 of 120 images; 1 other is resized",
    ]
    printed = capsys.readouterr().out.splitlines()
    assert all(note in printed for note in notes)
    assert summary()["notes"] == json.loads(Path("run/notes.json").read_text()) == notes


def voted(rows: int = 24) -> list[str]:
    """Pictures a and b, and what anna, ben and carl say of them; carl errs on every third."""
    lines = []
    for number in range(rows):
        draw(f"photos/{number}.png", number)
        right, wrong = "ab"[number % 2], "ba"[number % 2]
        lines.append(f"photos/{number}.png,{right},{right},{wrong if number % 3 == 0 else right}\n")
    return lines


def test_the_labels_of_several_annotators(capsys: pytest.CaptureFixture[str]) -> None:
    """Consensus is trained on; how good each annotator is, and every vote, are in the run."""
    Path("votes.csv").write_text("path,anna,ben,carl\n" + "".join(voted()))
    succeed("votes.csv", "--annotators", "anna,ben,carl", *QUICK)
    line = "72 votes of 3 annotators on 24 samples, 8 of them disputed; Krippendorff's alpha 0."
    assert line in capsys.readouterr().out
    told = summary()["annotators"]
    assert (told["num_annotators"], told["num_votes"], told["num_disputed"]) == (3, 72, 8)
    with Path("run/annotators.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert [row["annotator"] for row in table] == ["carl", "anna", "ben"]
    assert [float(row["agreement_with_consensus"]) for row in table] == [pytest.approx(2 / 3, abs=1e-4), 1, 1]
    with Path("run/label_issues.csv").open(newline="") as file:
        issues = {row["path"]: row for row in csv.DictReader(file)}
    assert issues["photos/0.png"]["given_label"] == "a"
    assert issues["photos/0.png"]["votes"] == "a 2, b 1"
    assert issues["photos/1.png"]["votes"] == "b 3"
    assert 0.5 < float(issues["photos/0.png"]["consensus_prob"]) < float(issues["photos/1.png"]["consensus_prob"])


def test_a_reviewer_corrects_the_consensus() -> None:
    """The votes stay as they are: corrections go to the table of the consensus, which can be trained on."""
    Path("votes.csv").write_text("path,anna,ben,carl\n" + "".join(voted()))
    succeed("votes.csv", "--annotators", "anna,ben,carl", *QUICK)
    Path("corrections.csv").write_text("index,path,given_label,new_label,action\n3,photos/3.png,b,a,choose\n")
    assert main(["relabel", "run/label_issues.csv", "corrections.csv", "--label_column", "given_label"]) == 0
    again = [*QUICK[:-1], "again", "--label_column", "given_label", "--image_root", "."]
    succeed("run/label_issues_corrected.csv", *again)
    with Path("again/label_issues.csv").open(newline="") as file:
        labels = {row["path"]: row["given_label"] for row in csv.DictReader(file)}
    assert labels == {f"photos/{n}.png": "a" if n == 3 else "ab"[n % 2] for n in range(24)}


def test_votes_from_python_stay_with_the_run() -> None:
    arrays = toy_arrays()
    votes = np.stack([arrays["y_train"]] * 3, axis=1).astype(float)
    votes[0] = [0, np.nan, 1]
    settings = SETTINGS | {"epochs": 2, "warmup_epochs": 1}
    run = dividemix.train(arrays["x_train"], votes, annotators=["x", "y", "z"], out="run", progress=False, **settings)
    again = dividemix.Run.load("run")
    for one in (run.material.votes, again.material.votes):
        assert one is not None
        assert one.annotators == ("x", "y", "z")
        assert one.counted(0) == "0 1, 1 1"
    assert run.label_issues().to_csv() == again.label_issues().to_csv()
    assert again.summary()["annotators"] == run.summary()["annotators"]


@pytest.mark.parametrize("face", ["command", "python"])
def test_vectors_as_they_were_read_are_let_go_of_before_training(face: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run has its own, standardised copy. Of a million vectors each other one would be a gigabyte."""
    vectors = np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32)
    np.savez("vectors.npz", features=vectors, labels=np.arange(40) % 2)
    read: list[weakref.ref[Any]] = []
    creation, epoch = Run.create, Run.train_epoch

    def create(*arguments: Any, **about: Any) -> Run:
        read.append(weakref.ref(about["source"].train_samples))
        return creation(*arguments, **about)

    def train_epoch(run: Run) -> Any:
        assert [reference() for reference in read] == [None]
        return epoch(run)

    monkeypatch.setattr(Run, "create", create)
    monkeypatch.setattr(Run, "train_epoch", train_epoch)
    if face == "command":
        succeed("vectors.npz", "--epochs", "2", "--out", "run")
    else:
        dividemix.train("vectors.npz", epochs=2, out="run", progress=False)
    assert len(read) == 1
