"""dividemix predict against `predict_proba` on the arrays that the files were made of."""

import csv
import io
import os
from pathlib import Path

import numpy as np
import pytest
from _pytest.capture import CaptureResult
from numpy.typing import NDArray
from PIL import Image
from small_model import CLASSES, save_images, small_images, small_model
from toys import tree

from dividemix.cli import main

IMAGES = small_images(6)
NAMES = ["a/1.png", "a/2.png", "a/10.png", "b/x.bmp", "b/y.tif", "z.png"]


@pytest.fixture(autouse=True)
def _workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model in run/, and lossless image files of its size in photos/."""
    monkeypatch.chdir(tmp_path)
    small_model().save_pretrained(tmp_path / "run" / "model")
    save_images(tmp_path / "photos", IMAGES, NAMES)


def table(text: str) -> tuple[list[str], list[str], NDArray[np.float64]]:
    """Paths, labels and probabilities (N, 1 + C) of a CSV text, after a look at its header."""
    header, *rows = csv.reader(io.StringIO(text, newline=""))
    assert header == ["path", "predicted_label", "predicted_prob", *(f"prob_{name}" for name in CLASSES)]
    return [row[0] for row in rows], [row[1] for row in rows], np.array([row[2:] for row in rows], dtype=float)


def check(text: str, paths: list[str], images: NDArray[np.uint8]) -> None:
    """The table has these paths, and the predictions of these images."""
    there, labels, probs = table(text)
    expected = small_model().predict_proba(images)
    assert there == paths
    assert labels == [CLASSES[k] for k in expected.argmax(axis=1)]
    np.testing.assert_allclose(probs[:, 0], expected.max(axis=1), atol=1e-5)
    np.testing.assert_allclose(probs[:, 1:], expected, atol=1e-5)


def predicted(capsys: pytest.CaptureFixture[str], *arguments: str) -> CaptureResult[str]:
    """What a predict that must succeed writes to stdout and stderr."""
    capsys.readouterr()
    assert main(["predict", "run", *map(str, arguments)]) == 0
    return capsys.readouterr()


def test_a_folder(capsys: pytest.CaptureFixture[str]) -> None:
    output = predicted(capsys, "photos", "--batch_size", "4", "--device", "cpu")
    check(output.out, [f"photos/{name}" for name in NAMES], IMAGES)
    assert output.err == "dividemix: 6 images predicted, 0 skipped\n"


def test_files_a_table_and_the_model_folder_itself(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "photos" / "t.csv").write_text("path\na/10.png\nz.png\n")
    assert main(["predict", "run/model", "photos/b/y.tif", "photos/t.csv"]) == 0
    check(capsys.readouterr().out, ["photos/b/y.tif", "a/10.png", "z.png"], IMAGES[[4, 2, 5]])


def test_images_of_every_mode_and_size(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Their oracle is Pillow's own conversion; a plain colour survives any resizing."""
    colours = np.array([[200, 30, 90]] * 3 + [[77, 77, 77]] * 3, dtype=np.uint8)
    images = np.tile(colours[:, None, None], (1, 8, 8, 1))
    big = Image.new("RGB", (40, 30), (200, 30, 90))
    (tmp_path / "modes").mkdir()
    big.save("modes/1.png")
    big.quantize(2).save("modes/2.gif")
    big.convert("RGBA").save("modes/3.webp", lossless=True)
    Image.new("L", (5, 70), 77).save("modes/4.png")
    Image.new("LA", (9, 9), (77, 255)).save("modes/5.png")
    Image.fromarray(np.full((11, 8), 77 * 257, dtype=np.uint16)).save("modes/6.png")
    names = ["1.png", "2.gif", "3.webp", "4.png", "5.png", "6.png"]
    check(predicted(capsys, "modes").out, [f"modes/{name}" for name in names], images)


def test_out_is_written_whole_and_nothing_is_printed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    before = tree(tmp_path)
    output = predicted(capsys, "photos/z.png", "--out", "out.csv")
    assert output.out == ""
    assert output.err == "dividemix: 1 image predicted, 0 skipped: out.csv\n"
    check((tmp_path / "out.csv").read_text(), ["photos/z.png"], IMAGES[5:])
    assert tree(tmp_path).keys() - before.keys() == {"out.csv"}


def test_an_existing_file_is_replaced_only_on_request(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A table of labels that is read is never replaced, not even through a link to it."""
    own = tmp_path / "photos" / "own.csv"
    own.write_text("path,label\nz.png,ant\n")
    (tmp_path / "link.csv").symlink_to(own)
    kept = tmp_path / "kept.csv"
    kept.write_text("precious")
    before = tree(tmp_path)
    assert main(["predict", "run", "photos", "--out", "kept.csv"]) == 2
    told = "--out is kept.csv: it exists: add --overwrite to replace it, or choose another --out"
    assert told in capsys.readouterr().err
    for more in ([], ["--overwrite"]):
        assert main(["predict", "run", "photos/own.csv", "--out", "link.csv", *more]) == 2
        assert "--out is link.csv: that is a file to be read: name another file" in capsys.readouterr().err
    assert tree(tmp_path) == before
    predicted(capsys, "photos/own.csv", "--out", "kept.csv", "--overwrite")
    check(kept.read_text(), ["z.png"], IMAGES[5:])


def test_unreadable_images_are_reported_and_skipped(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "photos" / "a" / "2.png").write_bytes(b"no image")
    content = (tmp_path / "photos" / "b" / "x.bmp").read_bytes()
    (tmp_path / "photos" / "b" / "x.bmp").write_bytes(content[: len(content) // 2])
    output = predicted(capsys, "photos", "--batch_size", "2")
    rest = [0, 2, 4, 5]
    check(output.out, [f"photos/{NAMES[k]}" for k in rest], IMAGES[rest])
    lines = output.err.splitlines()
    assert [line.split(": ")[1] for line in lines[:-1]] == ["photos/a/2.png", "photos/b/x.bmp"]
    assert lines[-1] == "dividemix: 4 images predicted, 2 skipped"


def test_a_missing_file_of_a_table_is_skipped(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "photos" / "t.csv").write_text("path\ngone.png\nz.png\n")
    output = predicted(capsys, "photos/t.csv")
    check(output.out, ["z.png"], IMAGES[5:])
    assert "gone.png: no such file" in output.err


def test_names_that_are_not_text_do_no_harm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nor does a terminal that knows ASCII alone."""
    (tmp_path / "odd").mkdir()
    odd = os.fsencode(tmp_path / "odd")
    for name in (b"a\xff.png", b'b, "c".png', "\N{SNOWMAN}.png".encode()):
        os.link(tmp_path / "photos" / "z.png", odd + b"/" + name)
    output = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(output, encoding="ascii"))
    assert main(["predict", "run", "odd"]) == 0
    paths = ["odd/a\\xff.png", 'odd/b, "c".png', "odd/\N{SNOWMAN}.png"]
    check(output.getvalue().decode(), paths, IMAGES[[5, 5, 5]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere", "photos"], "not a run directory or a model: give the directory that dividemix train wrote"),
        (["run", "gone.png"], "gone.png: no such file or folder"),
        (["run", "run"], "no images found"),
        (["run"], "dividemix predict needs SAMPLES: see dividemix predict --help"),
        (["run", "photos", "--batch_size", "0"], "batch_size is 0"),
        (["run", "photos", "--batch_size", "x"], "--batch_size"),
        (["run", "photos", "--device", "abacus"], "device 'abacus'"),
        (["run", "x.npz"], "x.npz: run was trained on images: give image files, folders or tables of paths"),
        (["run", "news.csv"], "this model takes images: use that name for the column of their paths"),
        (["photos", "trained"], "trained is a run, and comes first: dividemix predict trained photos"),
        (["run", "photos", "--out", "no/where.csv"], "it must be a file in an existing folder"),
        (["run", "photos", "--out", "photos"], "it must be a file in an existing folder"),
        (["run", "photos", "--out", "p.xlsx"], "--out is p.xlsx: a .csv file is written: change the extension"),
        (["nowhere", "photos", "--out", "p"], "--out is p: a .csv file is written: change the extension"),
        (
            ["run", "run/model/config.json", "--out", "out.csv"],
            "no image to predict (1 skipped): name files that have images",
        ),
    ],
)
def test_mistakes_end_in_one_line_and_change_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "x.npz").write_bytes(b"PK")
    (tmp_path / "news.csv").write_text("text,label\na,b\n")
    (tmp_path / "trained" / "checkpoints").mkdir(parents=True)
    (tmp_path / "trained" / "config.yaml").touch()
    before = tree(tmp_path)
    assert main(["predict", *arguments]) == 2
    output = capsys.readouterr()
    *listed, error = output.err.splitlines()
    assert error.startswith("dividemix: error: ")
    assert message in error
    assert len(listed) == ("1 skipped" in message)  # the unreadable image
    assert output.out == ""
    assert tree(tmp_path) == before
