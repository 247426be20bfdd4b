"""Folders of .parquet shards. Oracle: the images and labels that the test wrote by pyarrow, and the single file."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pictures import encoded, pixels

from dividemix.data.cache_folder import cache_folder
from dividemix.data.image_files import ImageFiles, fingerprint
from dividemix.data.readers import read_source
from dividemix.data.readers.table_columns import TableColumns
from dividemix.errors import InputError

ARRAY = np.stack([pixels(number) for number in range(12)])
LAYOUT = {
    "info": {"features": {"picture": {"_type": "Image"}, "kind": {"_type": "ClassLabel", "names": ["z", "b", "a"]}}}
}


def write_parquet(path: Path, numbers: range, **changes: Any) -> None:
    """A shard of the layout of Hugging Face; changes are columns of other values."""
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = {
        "picture": [{"bytes": encoded(pixels(number)), "path": f"{number}.png"} for number in numbers],
        "kind": [number % 3 for number in numbers],
    }
    table = pa.table(columns | changes).replace_schema_metadata({"huggingface": json.dumps(LAYOUT)})
    pq.write_table(table, path, row_group_size=3)


def write_set(folder: Path) -> Path:
    for shard in range(3):
        write_parquet(folder / f"train-{shard:05d}-of-00003.parquet", range(4 * shard, 4 * shard + 4))
    return folder


@pytest.mark.parametrize("folder", ["set", "set/data"])
def test_a_folder_of_shards_is_its_images(tmp_path: Path, folder: str) -> None:
    write_set(tmp_path / folder)
    write_parquet(tmp_path / folder / "test-00000-of-00001.parquet", range(6))
    for memory_gb in (4.0, 0.0):
        source = read_source(str(tmp_path / "set"), memory_gb=memory_gb)
        np.testing.assert_array_equal(source.train_samples[:], ARRAY)
        np.testing.assert_array_equal(source.test_samples[:], ARRAY[:6])  # type: ignore[index]
        assert source.train_labels.tolist() == [0, 1, 2] * 4
        assert source.classes == ("z", "b", "a")
        assert source.paths is not None
        assert source.paths[5].endswith("train-00001-of-00003.parquet/5.png")
        assert isinstance(source.train_samples, ImageFiles) == (memory_gb == 0)


def test_shards_are_the_data_of_one_file_with_all_rows(tmp_path: Path) -> None:
    write_parquet(tmp_path / "one.parquet", range(12))
    one, many = read_source(str(tmp_path / "one.parquet")), read_source(str(write_set(tmp_path / "set")))
    assert fingerprint(one.train_samples) == fingerprint(many.train_samples)
    assert (one.classes, one.train_labels.tolist()) == (many.classes, many.train_labels.tolist())


def test_images_are_copied_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIVIDEMIX_CACHE", str(tmp_path / "cache"))
    folder = str(write_set(tmp_path / "set"))
    read_source(folder)
    copies = sorted((cache_folder() / "shards").glob("*.images"))
    assert sum(one.stat().st_size for one in copies) == sum(len(encoded(image)) for image in ARRAY)
    times = [one.stat().st_mtime_ns for one in copies]
    with monkeypatch.context() as patch:
        patch.setattr("dividemix.data.readers.parquet_shards._copied", None)
        read_source(folder)
    copies[1].write_bytes(b"cut short")
    np.testing.assert_array_equal(read_source(folder).train_samples, ARRAY)
    assert [one.stat().st_mtime_ns for one in copies][::2] == times[::2]


def test_rows_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "set")
    cells = [
        {"bytes": None, "path": "far.png"},
        {"bytes": None, "path": None},
        *[{"bytes": encoded(pixels(1)), "path": ""}] * 2,
    ]
    write_parquet(folder / "train-00001-of-00003.parquet", range(4), picture=cells, kind=[0, 1, 7, None])
    source = read_source(str(folder))
    np.testing.assert_array_equal(source.train_samples, ARRAY[[0, 1, 2, 3, 8, 9, 10, 11]])
    start = "train-00001-of-00003.parquet/"
    assert {one.path.removeprefix(start): one.reason for one in source.skipped} == {
        "far.png": "no image: the shard has only its path",
        "row 1": "no image",
        "row 2": "label '7' is not one of the classes",
        "row 3": "no label",
    }


def test_names_of_columns_and_true_labels(tmp_path: Path) -> None:
    for shard in range(2):
        contents = [encoded(pixels(number)) for number in range(6 * shard, 6 * shard + 6)]
        table = {"content": contents, "word": ["x", "y"] * 3, "true_label": ["y", "x"] * 3}
        pq.write_table(pa.table(table), tmp_path / f"{shard}.parquet")
    source = read_source(str(tmp_path), columns=TableColumns(path_column="content", label_column="word"))
    np.testing.assert_array_equal(source.train_samples, ARRAY)
    assert source.true_labels is not None
    assert source.true_labels.tolist() == [1, 0] * 6
    with pytest.raises(InputError, match=r"0\.parquet: no column 'path', it has 'content', 'word'"):
        read_source(str(tmp_path))


def test_damage_and_gaps_are_one_line(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "set")
    shard = folder / "train-00002-of-00003.parquet"
    shard.write_bytes(shard.read_bytes()[:300])
    with pytest.raises(InputError, match=r"train-00002-of-00003\.parquet: damaged, or not a Parquet file") as caught:
        read_source(str(folder))
    assert "\n" not in str(caught.value)
    shard.unlink()
    with pytest.raises(InputError, match="has 2 of 3 shards: train-00002-of-00003 is missing"):
        read_source(str(folder))


def test_a_cache_that_cannot_be_written_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DIVIDEMIX_CACHE", str(tmp_path / "file" / "below"))
    with pytest.raises(InputError, match=r"cannot be copied to .*set DIVIDEMIX_CACHE to another folder"):
        read_source(str(write_set(tmp_path / "set")))


def test_a_flipped_bit_in_the_copied_images_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the size of the copy was compared: another pixel, or a skipped image, would have passed silently."""
    monkeypatch.setenv("DIVIDEMIX_CACHE", str(tmp_path / "cache"))
    folder = str(write_set(tmp_path / "set"))
    read_source(folder)
    copy = min((cache_folder() / "shards").glob("*.images"))
    content = copy.read_bytes()
    for place in range(0, len(content), 37):
        copy.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        with pytest.raises(InputError, match="damaged at image"):
            read_source(folder)
    copy.unlink()
    np.testing.assert_array_equal(read_source(folder).train_samples, ARRAY)
