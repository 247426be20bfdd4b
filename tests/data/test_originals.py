"""Originals found again: the oracle is what the readers of the data give."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dividemix.data.originals import originals
from dividemix.errors import InputError


def photos(folder: Path) -> None:
    for name in ("cat/1.png", "cat/2.png", "dog/3.png"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (8, 8)).save(folder / name)


def test_of_a_folder_and_of_its_training_part(tmp_path: Path) -> None:
    photos(tmp_path / "p" / "train")
    photos(tmp_path / "p" / "test")
    found = originals({"data": str(tmp_path / "p"), "root": None})
    assert found is not None
    assert (found.names[2], found[2]) == ("train/dog/3.png", tmp_path / "p" / "train" / "dog" / "3.png")
    assert len(found) == 3


def test_of_a_table_the_row_is_the_key(tmp_path: Path) -> None:
    photos(tmp_path)
    (tmp_path / "t.csv").write_text("file,class,split\ncat/1.png,cat,test\n,cat,train\ncat/2.png,cat,train\n")
    found = originals({"data": str(tmp_path / "t.csv"), "path_column": "file", "label_column": "class"})
    assert found is not None
    assert (found.names, dict(found)) == ({2: "cat/2.png"}, {2: tmp_path / "cat" / "2.png"})


def test_of_a_parquet_table_the_content(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({"image": [b"1", b"2"], "label": ["a", "b"]}), tmp_path / "t.parquet")
    found = originals({"data": str(tmp_path / "t.parquet")})
    assert found is not None
    assert (found.names, dict(found)) == ({0: "row 0", 1: "row 1"}, {0: b"1", 1: b"2"})


def test_arrays_have_none(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", x_train=np.zeros((2, 8, 8), np.uint8), y_train=np.array([0, 1]))
    assert originals({"data": str(tmp_path / "d.npz")}) is None
    assert originals({"data": "fashion"}) is None


def test_data_that_is_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        originals({"data": str(tmp_path / "t.csv")})
