"""A page's content and pictures from the files of a run; the oracle is the run itself, with its networks."""

import errno
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from injected import OPENING, injected, refusing
from PIL import Image
from toys import toy_job, trained

from dividemix.errors import InputError
from dividemix.report.of_files import content_of_files
from dividemix.report.of_run import page_content
from dividemix.report.run_pictures import run_pictures
from dividemix.report.thumbnails import encode, encode_file
from dividemix.runs.run import Run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("toy")
    return trained(folder / "run", toy_job(folder, holdout=0.2))


def test_it_is_what_the_run_thinks_of_its_labels(run: Run) -> None:
    found, expected = content_of_files(run.directory.path), page_content(run)
    order = run.label_issues().order
    assert found.classes == expected.classes
    assert found.sample_rows.tolist() == expected.sample_rows[order].tolist()
    for name in ("labels", "is_issue"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)[order])
    for name in ("probs", "label_score"):
        assert np.allclose(getattr(found, name), getattr(expected, name)[order], rtol=1e-5, atol=1e-9)
    for name in ("clean_prob", "losses"):
        assert np.allclose(getattr(found, name), getattr(expected, name)[:, order], rtol=1e-5, atol=1e-9)
    assert np.allclose(found.noise_matrix, expected.noise_matrix)
    assert found.noise_rate == pytest.approx(expected.noise_rate)
    assert (found.can_add_classes, found.kept_epoch) == (expected.can_add_classes, expected.kept_epoch)


def test_arrays_are_shown_as_they_were_trained_on(run: Run) -> None:
    content = content_of_files(run.directory.path)
    pictures = run_pictures(run.directory.path, content)
    refused = pytest.raises(InputError, match="cannot be read: Too many open files")
    with refused, injected(refusing(Path(run.job.data), 0, errno.EMFILE, OPENING)):  # not: no pictures at all
        pictures.small(0)
    pixels = run.material.everything.pixels(content.sample_rows)
    assert [pictures.small(i) for i in range(len(pixels))] == [encode(image) for image in pixels]
    assert pictures.files == {}


def test_photographs_are_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(24):
        file = tmp_path / "photos" / f"{('cat', 'dog')[i % 2]}/{i}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (60, 30), (10 * i, 100, 200)).save(file)
    monkeypatch.chdir(tmp_path)
    trained(tmp_path / "run", toy_job(tmp_path, data="photos", noise="none", image_size=8, batch_size=4))
    content = content_of_files(tmp_path / "run")
    pictures = run_pictures(tmp_path / "run", content)
    assert content.paths is not None
    for i, path in enumerate(content.paths):
        assert pictures.small(i) == encode_file(tmp_path / "photos" / path)
    first, elsewhere = pictures.small(0), tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    with pytest.raises(InputError, match="photos: no such file or folder: start in the folder where it was trained"):
        run_pictures(tmp_path / "run", content)
    assert run_pictures(tmp_path / "run", content, str(tmp_path / "photos")).small(0) == first
    (tmp_path / "photos" / content.paths[3]).rename(tmp_path / "photos" / "cat" / "999.png")
    with pytest.raises(InputError, match="is not where it was when the run was trained: give the right data"):
        run_pictures(tmp_path / "run", content, str(tmp_path / "photos"))


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("pred_probs.npy", lambda file: np.save(file, np.zeros((3, 4), np.float32)), r"pred_probs\.npy: damaged"),
        ("pred_probs.npy", lambda file: file.write_bytes(b"\x93NUMPY"), r"pred_probs\.npy: damaged"),
        ("pred_probs.npy", lambda file: np.save(file, np.full((40, 4), np.nan, np.float32)), "not in"),
        ("pred_probs.npy", Path.unlink, r"pred_probs\.npy: cannot be read: No such file"),
        ("model/config.json", lambda file: file.write_text(json.dumps({"classes": ["a", 1]})), "does not name the cl"),
        ("model/config.json", lambda file: file.write_text(json.dumps({"classes": ["a", "b"]})), "that is no class"),
        ("summary.json", lambda file: file.write_text("[]"), r"summary\.json: damaged"),
        (
            "label_issues.csv",
            lambda file: file.write_text(file.read_text().split("\n")[0] + "\n"),
            "was changed or damaged",
        ),
        ("label_issues.csv", Path.unlink, "not finished: train it to its end first"),
    ],
)
def test_a_damaged_run_is_refused_in_one_line(
    run: Run, tmp_path: Path, name: str, change: object, message: str
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(run.directory.path, copy)
    assert callable(change)
    change(copy / name)
    with pytest.raises(InputError, match=message) as caught:
        content_of_files(copy)
    assert "\n" not in str(caught.value)


def test_torch_is_not_loaded() -> None:
    """So the review of a run begins at once."""
    for name in ("of_files", "run_pictures", "payload", "review_server"):
        code = f"import sys, dividemix.report.{name}; sys.exit('torch' in sys.modules)"
        done = subprocess.run([sys.executable, "-c", code], check=False)
        assert done.returncode == 0, f"report/{name}.py, or a module that it imports, imports torch at its top"
