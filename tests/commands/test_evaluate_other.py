"""dividemix evaluate RUN --test DATA: other labelled data of every kind.

The oracles are the figures that the training left in summary.json for the same samples, and what predict says of them.
"""

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from toys import toy_arrays
from workshop import QUICK, fail, succeed, tree_here

from dividemix.cli import main

pytestmark = pytest.mark.usefixtures("workshop")
SEEN = toy_arrays()


def evaluated(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[str, float, dict[str, str]]:
    """The first line, the accuracy, and the recall of each class that evaluate prints. It must change nothing."""
    capsys.readouterr()
    before = tree_here()
    assert main(["evaluate", "run", *words]) == 0
    assert tree_here() == before
    lines = capsys.readouterr().out.splitlines()
    accuracy = next(float(line.split()[1]) for line in lines if line.startswith("accuracy "))
    rows = [line.replace("│", " ").split() for line in lines if line[:1] == "│"]
    return lines[0], accuracy, dict(rows)


def write_folder(folder: Path, images: Any, labels: Any, names: dict[int, str] | None = None) -> None:
    """A folder with a subfolder of .png files for each class."""
    for number, (image, label) in enumerate(zip(images, labels, strict=True)):
        place = folder / (str(label) if names is None else names[int(label)])
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(place / f"{number}.png")


def test_images_are_tested_without_the_training_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    succeed(*QUICK, "--out", "run")
    summary = json.loads(tree_here()["run/summary.json"])
    np.savez("other.npz", x_train=SEEN["x_test"], y_train=SEEN["y_test"])
    write_folder(tmp_path / "photos", SEEN["x_test"], SEEN["y_test"])
    paths = sorted(Path("photos").rglob("*.png"))
    Path("table.csv").write_text("file,class\n" + "".join(f"{path},{path.parent.name}\n" for path in paths))
    shutil.move("toy.npz", "gone.npz")
    for data, *flags in (
        ["other.npz"],
        ["photos"],
        ["table.csv", "--path_column", "file", "--label-column", "class"],
        ["photos", "--memory_gb", "0"],
    ):
        line, accuracy, recall = evaluated(capsys, "--test", data, *flags)
        assert line == f"run: robust, the run's model, 12 images of {data}"
        assert accuracy == pytest.approx(summary["kept_acc"], abs=0.005)
        assert recall == {name: f"{value:.1f}" for name, value in summary["class_recall"].items()}


def test_classes_are_matched_by_name_not_by_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of two classes only, and of a folder in which they sort differently."""
    names = {0: "zebra", 1: "ant", 2: "cow", 3: "bee"}
    write_folder(tmp_path / "photos", SEEN["x_train"], SEEN["y_train"], names)
    succeed("photos", *QUICK[1:], "--out", "run")
    few = np.isin(SEEN["y_test"], [0, 3])
    write_folder(tmp_path / "few", SEEN["x_test"][few], SEEN["y_test"][few], names)
    assert main(["predict", "run", "few", "--out", "out.csv"]) == 0
    rows = list(csv.DictReader(Path("out.csv").read_text().splitlines()))
    right = [row["predicted_label"] == Path(row["path"]).parent.name for row in rows]
    _, accuracy, recall = evaluated(capsys, "--test", "few")
    assert accuracy == pytest.approx(100 * np.mean(right), abs=0.005)
    assert list(recall) == ["ant", "bee", "cow", "zebra"]
    assert (recall["ant"], recall["cow"]) == ("-", "-")


def test_an_image_that_cannot_be_read_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    succeed(*QUICK, "--out", "run")
    write_folder(tmp_path / "photos", SEEN["x_test"], SEEN["y_test"])
    Path("photos/0/0.png").write_bytes(b"nothing")
    line, _, _ = evaluated(capsys, "--test", "photos")
    assert line.startswith("skipped 1 of the files, the first: 0/0.png: test set: ")


def test_vectors_texts_and_rows_are_tested(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(80) % 2
    vectors = (rng.normal(size=(80, 6)) + 3 * labels[:, None]).astype(np.float32)
    topics = [["match", "goal", "team", "season", "coach", "score"], ["bake", "oven", "sauce", "cook", "dish", "taste"]]
    words = [" ".join(rng.choice(topics[label], 8)) for label in labels]
    sizes = [f"{5 * label + number:.3f}" for label, number in zip(labels, rng.normal(size=80), strict=True)]
    np.savez("a.npz", features=vectors[:60], labels=labels[:60])
    np.savez("b.npz", features=vectors[60:], labels=labels[60:])
    for name, part in (("a.csv", range(60)), ("b.csv", range(60, 80))):
        lines = [f"{words[i]} {i},{sizes[i]},{'ok' if labels[i] else 'bad'}" for i in part]
        Path(name).write_text("\n".join(["text,size,label", *lines]) + "\n")
    np.save("c.npy", vectors[60:])
    np.save("c_labels.npy", labels[60:])
    ways = {
        "vectors": (["a.npz"], [["--test", "b.npz"], ["--test", "c.npy", "--test_labels", "c_labels.npy"]]),
        "texts": (["a.csv", "--text_column", "text", "--encoder", "tfidf"], [["--test", "b.csv"]]),
        "rows": (["a.csv", "--target", "label", "--drop_columns", "text"], [["--test", "b.csv"]]),
    }
    for kind, (train, tests) in ways.items():
        succeed(*train, "--out", "run", "--overwrite")
        for test in tests:
            line, accuracy, recall = evaluated(capsys, *test)
            assert line.endswith(f", the run's model, 20 {kind} of {test[1]}")
            assert accuracy > 90  # the classes are far apart
            assert list(recall) == (["0", "1"] if kind == "vectors" else ["bad", "ok"])
        if kind == "vectors":
            np.savez("narrow.npz", features=vectors[:, :5], labels=labels)
            narrow = fail(capsys, ["evaluate", "run", "--test", "narrow.npz"])
            assert "has vectors of 5 numbers, but the training vectors have 6" in narrow
            other = fail(capsys, ["evaluate", "run", "--test", "toy.npz"])
            assert "has images, but the training samples are vectors" in other
        else:
            other = fail(capsys, ["evaluate", "run", "--test", "b.npz"])
            assert f"b.npz: the run was trained on {kind}: give a .csv, .tsv, .parquet or .jsonl file" in other
    Path("d.csv").write_text("size,label\n3,ok\n2,awful\n")
    assert "'awful' is not a class of the training labels, which are 'bad', 'ok'" in fail(
        capsys, ["evaluate", "run", "--test", "d.csv"]
    )
    Path("d.csv").write_text("length,label\n3,ok\n2,bad\n")
    assert "no column 'size', which the model needs" in fail(capsys, ["evaluate", "run", "--test", "d.csv"])


def test_what_cannot_be_tested_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    succeed(*QUICK, "--out", "run")
    np.savez("class.npz", x_train=SEEN["x_test"], y_train=SEEN["y_test"] + 1)
    np.savez("size.npz", x_train=np.zeros((4, 9, 9), np.uint8), y_train=np.arange(4))
    np.savez("vectors.npz", features=np.zeros((4, 3), np.float32), labels=np.arange(4))
    for words, message in (
        (["--test", "nowhere"], "--test is 'nowhere': no such file or folder"),
        (["--test", "class.npz"], "'4' is not a class of the training labels, which are '0', '1', '2', '3'"),
        (["--test", "size.npz"], "has images of (9, 9, 1), but the training images are (8, 8, 1)"),
        (["--test", "vectors.npz"], "has vectors, but the training samples are images"),
        (
            ["--test", "toy.npz", "--target", "label"],
            "--target has no meaning for the run, which was",
        ),
        (["--test", "toy.npz", "--checkpoint", "best"], "--checkpoint has no meaning with --test"),
        (["--test", "toy.npz", "--data", "toy.npz"], "--data has no meaning with --test"),
        (["--label_column", "class"], "--label_column has no meaning without --test DATA"),
    ):
        assert message in fail(capsys, ["evaluate", "run", *words])
    assert "nowhere: not a run directory" in fail(capsys, ["evaluate", "nowhere", "--test", "toy.npz"])
