"""The embedded set: its labels against the published opening of Fashion-MNIST, its bytes against a pinned check sum.

The tool that made it is compared with a slow loop on small IDX files made here.
"""

import gzip
import hashlib
import importlib.util
import struct
import time
from importlib import resources
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dividemix.data.builtin import BUILT_IN
from dividemix.data.readers import read_source
from dividemix.data.readers.fashion import read_fashion
from dividemix.data.source import Images
from dividemix.errors import InputError


def test_six_thousand_and_two_thousand_balanced_images() -> None:
    source = read_fashion()
    assert source.train_samples.shape == (6000, 28, 28, 1)
    assert source.test_samples is not None
    assert source.test_labels is not None
    assert source.true_labels is not None
    assert source.test_samples.shape == (2000, 28, 28, 1)
    assert np.bincount(source.train_labels).tolist() == [600] * 10
    assert np.bincount(source.test_labels).tolist() == [200] * 10
    assert source.true_labels.tolist() == source.train_labels.tolist()
    assert len(source.classes) == 10


def test_it_opens_as_the_original_does() -> None:
    """The first ten labels of the original files; the pixels of the subset by check sum."""
    source = read_fashion()
    assert source.train_labels[:10].tolist() == [9, 0, 0, 3, 0, 2, 7, 2, 5, 5]
    assert source.test_labels is not None
    assert isinstance(source.train_samples, np.ndarray)
    assert isinstance(source.test_samples, np.ndarray)
    assert source.test_labels[:10].tolist() == [9, 2, 1, 1, 6, 1, 4, 6, 5, 7]
    pixels = source.train_samples.tobytes() + source.test_samples.tobytes()
    assert hashlib.sha256(pixels).hexdigest() == "449285c6fd2b41fdc2bdf10e1737f621576fec9bf361408b53ab434198d6f48d"


def test_it_is_read_in_well_under_a_second() -> None:
    start = time.perf_counter()
    read_fashion()
    assert time.perf_counter() - start < 1


def test_its_licence_is_beside_it() -> None:
    text = (resources.files("dividemix.data") / "embedded" / "LICENSE").read_text(encoding="utf-8")
    assert "Copyright (c) 2017 Zalando SE" in text


def test_similar_classes_are_other_classes_and_two_have_none() -> None:
    source = read_fashion()
    assert source.similar is not None
    names = {source.classes[label]: source.classes[other] for label, other in source.similar.items()}
    assert all(name != other for name, other in names.items())
    assert names["Shirt"] == "T-shirt/top"
    assert names["T-shirt/top"] == "Shirt"
    assert not {"Trouser", "Bag"} & (set(names) | set(names.values()))


def test_the_tool_takes_the_first_of_each_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = load_tool()
    monkeypatch.setattr(tool, "TRAIN_PER_CLASS", 3)
    monkeypatch.setattr(tool, "TEST_PER_CLASS", 2)
    rng = np.random.default_rng(0)
    expected: dict[str, NDArray[Any]] = {}
    for split, prefix, per_class in (("train", "train", 3), ("test", "t10k", 2)):
        images = rng.integers(0, 256, (40, 4, 4), dtype=np.uint8)
        labels = rng.permutation(np.repeat(np.arange(4, dtype=np.uint8), 10))
        write_idx(tmp_path / f"{prefix}-images-idx3-ubyte.gz", images)
        write_idx(tmp_path / f"{prefix}-labels-idx1-ubyte.gz", labels)
        kept = [i for i in range(40) if labels[:i].tolist().count(labels[i]) < per_class]
        expected |= {f"x_{split}": images[kept], f"y_{split}": labels[kept]}
    tool.embed(tmp_path, tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz", allow_pickle=False) as made:
        assert set(made.files) == set(expected)
        for name, array in expected.items():
            np.testing.assert_array_equal(made[name], array)
    assert not list(tmp_path.glob("*.tmp*"))


def load_tool() -> ModuleType:
    path = Path(__file__).parents[2] / "tools" / "embed_fashion.py"
    spec = importlib.util.spec_from_file_location("embed_fashion", path)
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    return tool


def write_idx(path: Path, array: Images) -> None:
    header = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
    path.write_bytes(gzip.compress(header + array.tobytes()))


def test_read_source_knows_the_embedded_set() -> None:
    assert read_source("fashion").name == "fashion"
    with pytest.raises(InputError, match="no meaning for fashion"):
        read_source("fashion", Path("somewhere"))


@pytest.mark.parametrize("data", ["nonsense", "", "data/nonsense"])
def test_an_unknown_data_set_lists_the_known_ones(data: str) -> None:
    with pytest.raises(InputError, match="no such file or folder") as caught:
        read_source(data)
    assert all(name in str(caught.value) for name in (*BUILT_IN, ".npz"))


def test_a_name_that_is_nearly_that_of_a_data_set() -> None:
    with pytest.raises(InputError, match=r"^'Fashion': no such file or folder: did you mean 'fashion'\?$"):
        read_source("Fashion")


def test_a_file_that_is_no_data_set_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("0,1\n")
    with pytest.raises(InputError, match=r"data\.txt: not a data set: give a folder"):
        read_source(str(tmp_path / "data.txt"))
    (tmp_path / "data.xlsx").touch()
    with pytest.raises(InputError, match=r"data\.xlsx: not a data set: save the sheet as \.csv$"):
        read_source(str(tmp_path / "data.xlsx"))
