"""Shards in object stores: fsspec's file systems in memory and on the disk. Oracle: the same shards as local files."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
from pictures import pixels
from tar_shards import write_shards
from test_parquet_shards import write_set

from dividemix.data import assemble
from dividemix.data.image_files import ImageFiles, fingerprint
from dividemix.data.readers import read_source
from dividemix.errors import InputError

ARRAY = np.stack([pixels(number) for number in range(12)])


@pytest.fixture
def memory() -> Iterator[Any]:
    """The file system in memory, empty before and after."""
    files = fsspec.filesystem("memory")
    files.store.clear()
    yield files
    files.store.clear()


def put(files: Any, folder: Path, target: str) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            files.pipe_file(f"{target}/{path.relative_to(folder).as_posix()}", path.read_bytes())


@pytest.mark.parametrize("data", ["bucket/set", "bucket/set/", "bucket/set/shard-{000..002}.tar"])
def test_shards_in_memory_are_those_on_the_disk(tmp_path: Path, memory: Any, data: str) -> None:
    put(memory, write_shards(tmp_path / "set", 12, 3), "/bucket/set")
    local = read_source(str(tmp_path / "set"))
    for memory_gb in (4.0, 0.0):
        remote = read_source(f"memory://{data}", memory_gb=memory_gb)
        np.testing.assert_array_equal(remote.train_samples[:], ARRAY)
        assert fingerprint(remote.train_samples) == fingerprint(local.train_samples)
        assert (remote.paths, remote.train_labels.tolist()) == (local.paths, local.train_labels.tolist())


def test_the_local_file_system_of_fsspec_and_class_names(tmp_path: Path) -> None:
    folder = write_shards(tmp_path / "set", 12, 3, "train/{:03d}.tar")
    write_shards(tmp_path / "set", 12, 1, "test/{:03d}.tar")
    (folder / "classes.txt").write_text("cat\ndog\ncow\n")
    source = read_source(f"file://{folder}", memory_gb=0)
    assert isinstance(source.train_samples, ImageFiles)
    assert source.classes == ("cat", "dog", "cow")
    np.testing.assert_array_equal(source.train_samples[:], ARRAY)
    np.testing.assert_array_equal(source.test_samples[:], ARRAY)  # type: ignore[index]


def test_parquet_shards(tmp_path: Path, memory: Any) -> None:
    put(memory, write_set(tmp_path / "set"), "/bucket/data")
    source = read_source("memory://bucket")
    np.testing.assert_array_equal(source.train_samples, ARRAY)
    assert source.classes == ("z", "b", "a")


def test_a_changed_shard_is_indexed_again(tmp_path: Path, memory: Any) -> None:
    put(memory, write_shards(tmp_path / "set", 12, 3), "/b")
    assert len(read_source("memory://b").train_samples) == 12
    put(memory, write_shards(tmp_path / "other", 9, 3), "/b")
    assert len(read_source("memory://b").train_samples) == 9


def test_a_store_that_fails_during_training_ends_it(
    tmp_path: Path, memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An image must not become black because a network is down."""
    monkeypatch.setattr(assemble, "MANY", 9)
    monkeypatch.setattr(assemble, "_SAMPLE", 5)
    put(memory, write_shards(tmp_path / "set", 12, 3), "/b")
    images = read_source("memory://b", memory_gb=0).train_samples
    memory.rm("/b/shard-001.tar")
    with pytest.raises(InputError, match=r"shard-001\.tar: no such file or folder"):
        images[[4]]


def test_what_is_wrong_is_one_line(tmp_path: Path, memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    put(memory, write_shards(tmp_path / "set", 12, 2), "/b")
    memory.pipe_file("/text/readme.md", b"words")
    for data, words in (
        ("memory://b/shard-{000..002}.tar", r"memory://b/shard-002\.tar: no such file: a shard is missing"),
        ("memory://text", r"has no \.tar or \.parquet files"),
        ("memory://nowhere", r"has no \.tar or \.parquet files|no such file or folder"),
        ("dask://x/y", r"unknown kind of address: must begin with one of s3://"),
        ("simplecache::s3://b/x.tar", "unknown kind of address"),
    ):
        with pytest.raises(InputError, match=words) as caught:
            read_source(data)
        assert "\n" not in str(caught.value)
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(InputError, match=r"s3://b/x\.tar: cannot be opened .*pip install 'dividemix\[remote\]' s3fs"):
        read_source("s3://b/x.tar")
