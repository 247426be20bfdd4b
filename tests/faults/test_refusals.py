"""Files that the system refuses to read: the line says so, and nothing is taken for damaged, lost or replaced.

Each was found by the laboratory (disturb.py). Oracle: what the files had before.
"""

import errno
import json
import os
import resource
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from injected import GROWING, OPENING, injected, refusing
from other_samples import PARQUET, TAR, save_tables, save_tar, save_texts
from small_model import save_images, small_images, small_model
from tar_shards import write_shards
from toys import finish, save_toy, toy_job, trained, tree

from dividemix.cli import main
from dividemix.data import shard_files
from dividemix.data.readers.column_files import read_columns
from dividemix.data.readers.npz import read_npz
from dividemix.data.readers.shard_sets import find_shards
from dividemix.data.readers.shards import list_shards
from dividemix.data.readers.text_rows import read_text_rows, texts_of
from dividemix.encoders.vector_cache import cached
from dividemix.engine.checkpoint import load_checkpoint
from dividemix.errors import DamagedCacheWarning, InputError
from dividemix.experiments.finished import read_epochs
from dividemix.experiments.plans import PlannedRun
from dividemix.model.model import Model
from dividemix.report.of_files import content_of_files
from dividemix.runs.run import Run
from dividemix.stored import MAX_BYTES, read_bytes

READING = frozenset({"read", "os.listdir", "os.scandir"})


def said(call: Callable[[], object], path: Path, number: int = errno.EACCES) -> str:
    """The line of an error while the system refuses to read the path."""
    with injected(refusing(path, 0, number, READING)), pytest.raises((InputError, OSError)) as caught:
        call()
    line = str(caught.value)
    assert "\n" not in line
    assert os.strerror(number) in line
    for advice in ("damaged", "start again", "away", "save the model again", "cut short"):
        assert advice not in line
    return line


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run after two of four epochs."""
    return trained(tmp_path / "run", toy_job(tmp_path, method="cross_entropy"), num_epochs=2).directory.path


def test_an_npz_file_without_access_is_not_cut_short(tmp_path: Path) -> None:
    path = save_toy(tmp_path)
    said(lambda: read_npz(path), path)


@pytest.mark.parametrize("name", ["checkpoint.json", "*.safetensors"])
def test_a_checkpoint_that_is_refused_is_not_damaged(run: Path, name: str) -> None:
    """The advice was to start again, which would have cost the run."""
    (path,) = (run / "checkpoints" / "last").glob(name)
    said(lambda: load_checkpoint(path.parent), path, errno.EMFILE)
    said(lambda: Run.load(run), path, errno.EMFILE)


@pytest.mark.parametrize("name", ["choices.json", "metrics.jsonl", "config.yaml"])
def test_a_file_of_a_run_that_is_refused_is_not_damaged(run: Path, name: str) -> None:
    (run / "choices.json").write_text("[]")
    said(lambda: Run.load(run), run / name, errno.EIO)


def test_the_epochs_of_a_finished_run_that_are_refused_are_not_damaged(tmp_path: Path) -> None:
    job = toy_job(tmp_path, method="cross_entropy", epochs=1)
    path = trained(tmp_path / "run", job).directory.path
    said(lambda: read_epochs(PlannedRun("run", job), tmp_path), path / "metrics.jsonl", errno.ENOMEM)


def test_predictions_that_are_refused_are_not_damaged(tmp_path: Path) -> None:
    """`review` called them missing or damaged."""
    path = trained(tmp_path / "run", toy_job(tmp_path, method="cross_entropy", epochs=1)).directory.path
    said(lambda: content_of_files(path), path / "pred_probs.npy", errno.EMFILE)


def test_a_model_that_is_refused_need_not_be_saved_again(tmp_path: Path) -> None:
    small_model().save_pretrained(tmp_path)
    said(lambda: Model.from_pretrained(tmp_path), tmp_path / "model.safetensors", errno.EMFILE)


def test_a_file_of_samples_that_is_refused_is_not_called_another_kind_of_file(tmp_path: Path) -> None:
    """The advice was to convert the text file, and that the others had no JSON."""
    save_texts(tmp_path)
    text, lines = tmp_path / "texts.txt", tmp_path / "texts.jsonl"
    text.write_text("a\nb\n")
    reads: tuple[tuple[Path, Callable[[], object]], ...] = (
        (text, lambda: texts_of(text, None)),
        (lines, lambda: texts_of(lines, "text")),
        (lines, lambda: read_text_rows(lines, "text")),
        (lines, lambda: read_columns(lines)),
    )
    for path, read in reads:
        read()
        assert said(read, path) == f"{path}: cannot be read: Permission denied"


def test_cached_vectors_that_are_refused_are_not_computed_again(tmp_path: Path) -> None:
    """They were called damaged and replaced; an encoder may have taken hours for them."""
    vectors = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)

    def read() -> bytes:
        return cached(tmp_path, 20, lambda chunks: [vectors[chunk.start : chunk.stop] for chunk in chunks]).tobytes()

    whole, before = read(), {}
    for name in ("chunks.json", "vectors.npy"):
        before[name] = (tmp_path / name).stat().st_mtime_ns
        with injected(refusing(tmp_path / name, 0, errno.EMFILE, OPENING)), pytest.raises(InputError) as caught:
            read()
        assert str(caught.value) == f"{tmp_path / name}: cannot be read: Too many open files"
    assert read() == whole
    assert {name: (tmp_path / name).stat().st_mtime_ns for name in before} == before


def test_cached_vectors_that_may_only_be_read_are_used(tmp_path: Path) -> None:
    """It was said that they cannot be read: the file was opened to be written."""
    vectors = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)

    def read() -> bytes:
        return cached(tmp_path, 20, lambda chunks: [vectors[chunk.start : chunk.stop] for chunk in chunks]).tobytes()

    whole = read()
    with injected(refusing(tmp_path / "vectors.npy", 0, errno.EROFS, GROWING)):
        assert read() == whole


def test_a_chunk_of_cached_vectors_that_there_is_not_is_damage(tmp_path: Path) -> None:
    """A number of 20 digits was a traceback."""
    vectors = np.ones((20, 4), np.float32)

    def read() -> bytes:
        return cached(tmp_path, 20, lambda chunks: [vectors[chunk.start : chunk.stop] for chunk in chunks]).tobytes()

    whole, record = read(), tmp_path / "chunks.json"
    for number in ("9" * 20, "-1", "x"):
        record.write_text(record.read_text().replace('"0":', f'"{number}":'))
        with pytest.warns(DamagedCacheWarning, match="1 of 1 parts were damaged"):
            assert read() == whole


def test_the_index_of_shards_that_is_refused_is_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was called damaged and replaced."""
    monkeypatch.setenv("DIVIDEMIX_CACHE", str(tmp_path / "cache"))
    write_shards(tmp_path / "set", 12, 1)

    def read() -> object:
        shards = find_shards(str(tmp_path / "set"))
        assert shards is not None
        return list_shards(shards)

    read()
    (path,) = (tmp_path / "cache" / "shards").iterdir()
    assert said(read, path) == f"{path}: cannot be read: Permission denied"


@pytest.mark.parametrize(
    ("save", "words", "files"), [(save_tar, TAR, "shards/*.tar"), (save_tables, PARQUET, "cache/shards/*.images")]
)
def test_no_image_is_lost_where_a_shard_cannot_be_opened(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    save: Callable[[Path], object],
    words: list[str],
    files: str,
) -> None:
    """An image was skipped, and the training went on without it, exit code 0."""
    monkeypatch.setenv("DIVIDEMIX_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    save(tmp_path)
    assert main(["train", *words]) == 0
    path = min(tmp_path.glob(files))
    shard_files._opened.cache_clear()
    with injected(refusing(path, 0, errno.ENOMEM, READING, once=True)):
        assert main(["train", *words, "--overwrite"]) == 2
    assert capsys.readouterr().err.endswith(f"{path.name}: cannot be read: Cannot allocate memory: free some memory\n")
    assert not (tmp_path / "run" / "skipped.csv").exists()


def test_environments_that_cannot_be_read_are_not_replaced(run: Path) -> None:
    """They were taken for none, and the file was written again with the present one alone."""
    path = run / "env.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"platform": "another"}))
    before, loaded = path.read_text(), Run.load(run)
    said(lambda: finish(loaded), path, errno.EMFILE)
    assert path.read_text() == before
    finish(Run.load(run))
    after = json.loads(path.read_text())
    assert after["platform"] == "another"
    assert len(after["resumed"]) == 1


@pytest.mark.parametrize("words", [["--out"], ["--copy_to"]])
def test_corrected_data_lacks_no_folder_that_could_not_be_read(
    tmp_path: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The images of the folder were missing from the corrected data, exit code 0."""
    photos, corrections = tmp_path / "photos", tmp_path / "corrections.csv"
    save_images(photos, small_images(4), ["cat/0.png", "cat/1.png", "dog/2.png", "dog/3.png"])
    corrections.write_text("index,path,given_label,new_label,action\n0,cat/0.png,cat,dog,choose\n")
    out = tmp_path / ("corrected.csv" if words == ["--out"] else "cleaned")
    before = tree(tmp_path)
    command = ["relabel", str(photos), str(corrections), *words, str(out)]
    with injected(refusing(photos / "dog", 0, errno.EACCES, READING)):
        assert main(command) == 2
    assert "Permission denied" in capsys.readouterr().err
    assert tree(tmp_path) == before
    assert main(command) == 0


def test_no_memory_is_no_fault_of_an_image(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The image was skipped, exit code 0."""
    small_model().save_pretrained(tmp_path / "model")
    first, second = save_images(tmp_path, small_images(2), ["a.png", "b.png"])
    out = tmp_path / "out.csv"
    with injected(refusing(second, 0, errno.ENOMEM, READING)):
        assert main(["predict", str(tmp_path / "model"), str(first), str(second), "--out", str(out)]) == 2
    assert "Cannot allocate memory" in capsys.readouterr().err
    assert not out.exists()


def test_reading_a_small_file_takes_little_memory(tmp_path: Path) -> None:
    """A gigabyte of address space was taken for each metrics.jsonl, whatever its size."""
    path = tmp_path / "small"
    path.write_text("small")
    used = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmSize"))
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (int(used.split()[1]) * 1024 + 2**28, before[1]))
    try:
        assert read_bytes(path, MAX_BYTES) == b"small"
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
