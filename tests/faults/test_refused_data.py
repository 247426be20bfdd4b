"""Data that the system refuses to read: refused in one line, whatever the reader, and no sample is lost by it.

Such images were skipped, with a printed line: the training went on without them, and a repeat with access had other
data. Oracle: the same call without the refusal.
"""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
import torch
from injected import OPENING, injected, refusing
from official_trees import make_clothing1m
from other_samples import PARQUET, TAR, VOTES, save_tables, save_tar, save_votes
from small_model import save_images, small_images
from tar_shards import write_shards
from test_refusals import READING
from test_system_errors import few_files
from toys import tree

from dividemix.cli import main
from dividemix.data import shard_files
from dividemix.data.check import check
from dividemix.data.human_labels import human_labels
from dividemix.data.readers import read_source
from dividemix.data.readers.arrays import read_arrays
from dividemix.data.readers.table_columns import TableColumns
from dividemix.errors import InputError
from dividemix.report.pictures import Pictures
from dividemix.report.thumbnails import encode

ACCESS = "cannot be read: Permission denied: give yourself access, or leave it out of the data\n"
PIXELS = np.full((8, 8, 1), 7, np.uint8)
QUICK = ["--method", "cross_entropy", "--epochs", "2", "--net", "small_cnn", "--device", "cpu", "--out", "run"]


def save_photos(folder: Path) -> None:
    names = [f"{'ab'[number % 2]}/{number}.{'jpg' if number > 9 else 'png'}" for number in range(12)]
    save_images(folder / "photos", small_images(12), names)


def save_table(folder: Path) -> None:
    save_votes(folder)
    lines = ["path,label", *(f"voted/{number}.png,{'ab'[number % 2]}" for number in range(12))]
    (folder / "table.csv").write_text("\n".join(lines) + "\n")


READERS: dict[str, tuple[Callable[[Path], object], list[str], str]] = {
    "an image of a folder": (save_photos, ["photos", *QUICK], "photos/a/4.png"),
    "a plain JPEG file": (save_photos, ["photos", *QUICK], "photos/a/10.jpg"),
    "a class folder": (save_photos, ["photos", *QUICK], "photos/b"),
    "the folder": (save_photos, ["photos", *QUICK], "photos"),
    "an image of a table": (save_table, ["table.csv", *QUICK], "voted/3.png"),
    "an image with votes": (save_votes, VOTES, "voted/3.png"),
    "a .tar shard": (save_tar, TAR, "shards/shard-000.tar"),
    "a .parquet shard": (save_tables, PARQUET, "tables/train-00000-of-00002.parquet"),
}


@pytest.mark.parametrize("name", READERS)
def test_training_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    save, words, refused = READERS[name]
    monkeypatch.setenv("DIVIDEMIX_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    shard_files._opened.cache_clear()
    save(tmp_path)
    before = tree(tmp_path)
    with injected(refusing(tmp_path / refused, 0, errno.EACCES, READING)):
        assert main(["train", *words]) == 2
    assert capsys.readouterr().err == f"dividemix: error: {refused}: {ACCESS}"
    assert {path: content for path, content in tree(tmp_path).items() if not path.startswith("cache")} == before
    assert main(["train", *words]) == 0
    assert "skipped" not in capsys.readouterr().out


@pytest.mark.parametrize("number", [errno.EACCES, errno.EMFILE, errno.ENOMEM, errno.EIO])
def test_every_refusal_is_one(tmp_path: Path, number: int) -> None:
    save_photos(tmp_path)
    with (
        injected(refusing(tmp_path / "photos" / "a" / "4.png", 0, number, OPENING)),
        pytest.raises(InputError, match=rf"a/4\.png: cannot be read: {os.strerror(number)}: "),
    ):
        read_source(str(tmp_path / "photos"))


def test_an_image_that_cannot_be_looked_up_is_not_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of large data sets are looked up, not opened: a failing disk made some of them missing."""
    make_clothing1m(tmp_path)
    really_stat = os.stat

    def failing(path: Any, *arguments: Any, **options: Any) -> os.stat_result:
        if str(path).endswith("1002,2.jpg"):
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        return really_stat(path, *arguments, **options)

    monkeypatch.setattr(os, "stat", failing)
    with pytest.raises(InputError, match=r"1002,2\.jpg: cannot be read: Input/output error: check the disk"):
        read_source("clothing1m", root=tmp_path)


def test_a_link_into_a_folder_without_access_is_not_called_another_kind_of_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The images behind it were missing, with the reason that its extension is not that of an image."""
    save_photos(tmp_path)
    link = tmp_path / "photos" / "a" / "more"
    link.symlink_to(tmp_path / "hidden")
    really_stat = os.stat

    def denied(path: Any, *arguments: Any, **options: Any) -> os.stat_result:
        if str(path) == str(link) and options.get("follow_symlinks", True):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return really_stat(path, *arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(os, "stat", denied)
        with pytest.raises(InputError, match=r"a/more: cannot be read: Permission denied"):
            read_source(str(tmp_path / "photos"))
    assert [one.path for one in read_source(str(tmp_path / "photos")).skipped] == ["a/more"]  # it leads nowhere


def test_an_image_that_a_store_does_not_give_is_not_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = fsspec.filesystem("memory")
    files.store.clear()
    for path in write_shards(tmp_path / "set", 12, 3).glob("*.tar"):
        files.pipe_file(f"/b/{path.name}", path.read_bytes())
    really_give, given = type(files).cat_file, list[object]()

    def once(*arguments: Any, **options: Any) -> Any:
        given.append(arguments)
        if len(given) == 5:
            raise TimeoutError("the network is down")
        return really_give(*arguments, **options)

    monkeypatch.setattr(type(files), "cat_file", once)
    with pytest.raises(InputError, match=r"shard-00\d\.tar: cannot be read: the network is down"):
        read_source("memory://b")
    assert len(read_source("memory://b").train_samples) == 12
    files.store.clear()


def test_an_item_of_a_data_set_that_is_refused_is_not_skipped() -> None:
    """`datasets.Dataset` opens the files of its images when they are asked for."""

    class Opened:
        column_names, features = ("image", "label"), None

        def __init__(self, error: Exception):
            self._error = error

        def __len__(self) -> int:
            return 6

        def __getitem__(self, row: Any) -> Any:
            if row == "label":
                return [0, 1] * 3
            if row == 2:
                raise self._error
            return {"image": small_images(6)[row]}

    with pytest.raises(InputError, match=r"\[2\]: cannot be read: Too many open files: allow more"):
        read_arrays(Opened(OSError(errno.EMFILE, os.strerror(errno.EMFILE), "2.png")))
    assert len(read_arrays(Opened(OSError("image file is truncated"))).train_samples) == 5


@pytest.mark.parametrize("columns", [{"features_column": "v"}, {}])
def test_a_parquet_file_that_is_refused_is_not_called_damaged(tmp_path: Path, columns: dict[str, Any]) -> None:
    """Pyarrow opens it, which the faults of the laboratory do not meet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "table.parquet"
    labels = ["a", "b"] * 6
    images = save_images(tmp_path, small_images(12), [f"{number}.png" for number in range(12)])
    vectors = small_images(12).reshape(12, -1)[:, :4].astype(np.float32)
    pq.write_table(pa.table({"path": list(map(str, images)), "v": list(vectors), "label": labels}), path)
    read_source(str(path), columns=TableColumns(**columns))
    with few_files(), pytest.raises(InputError) as caught:
        read_source(str(path), columns=TableColumns(**columns))
    assert str(caught.value).endswith("cannot be read: Too many open files: allow more open files (ulimit -n)")


def test_official_files_that_are_refused_are_not_called_damaged(tmp_path: Path) -> None:
    labels = np.arange(50) % 10
    torch.save({"clean_label": labels, "worse_label": labels}, tmp_path / "CIFAR-10_human.pt")
    make_clothing1m(tmp_path / "clothing")
    reads: dict[Path, Callable[[], object]] = {
        tmp_path / "CIFAR-10_human.pt": lambda: human_labels("cifar10", "worst", tmp_path, np.arange(50), labels),
        tmp_path / "clothing" / "noisy_label_kv.txt": lambda: check("clothing1m", tmp_path / "clothing"),
    }
    for path, read in reads.items():
        read()
        with injected(refusing(path, 0, errno.EACCES, READING)), pytest.raises(InputError) as caught:
            read()
        assert str(caught.value).startswith(f"{path}: cannot be read: Permission denied")


def test_a_cache_is_not_blamed_for_a_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The advice was to free space, and to choose another folder for the cache."""
    monkeypatch.setenv("DIVIDEMIX_CACHE", str(tmp_path / "cache"))
    save_tables(tmp_path)
    shard = tmp_path / "tables" / "train-00000-of-00002.parquet"
    for at in (0, 1):
        with injected(refusing(shard, at, errno.EIO, READING)), pytest.raises(InputError) as caught:
            read_source(str(tmp_path / "tables"))
        assert str(caught.value).startswith(f"{shard}: cannot be read: Input/output error: check the disk")


def test_a_page_has_no_pixels_instead_of_a_photograph_that_is_refused(tmp_path: Path) -> None:
    """A page made without access to a photograph had the small square that was trained on, without a word."""
    (path,) = save_images(tmp_path, small_images(1), ["a.png"])
    pictures = Pictures({0: path, 1: tmp_path / "gone.png"}, lambda _: PIXELS)
    assert pictures.small(1) == encode(PIXELS)
    for number in (errno.EACCES, errno.EMFILE):
        refused = pytest.raises(InputError, match=rf"a\.png: cannot be read: {os.strerror(number)}: ")
        with injected(refusing(path, 0, number, READING)), refused:
            pictures.small(0)
