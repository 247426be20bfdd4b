"""Equal samples. Oracle: the number of the sample that each is a copy of."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from dividemix.data.equal_samples import equal_groups
from dividemix.data.readers import read_source
from dividemix.data.table_rows import as_rows
from dividemix.data.texts import as_texts

GROUPS = [0, 1, 2, 0, 3, 2]
RNG = np.random.default_rng(0)
NAN = float("nan")


@pytest.mark.parametrize(
    "different",
    [
        RNG.integers(0, 256, (4, 6, 5, 3), dtype=np.uint8),
        RNG.normal(size=(4, 3)),
        np.array([[1], [0], [2], [3]]),
        RNG.normal(size=(4, 1)),
        as_texts(["a b", "a  b", "A b", "ab"]),
        as_rows({"n": np.array([1.0, NAN, NAN, 1.0]), "c": ["x", "x", None, None]}),
        as_rows({"c": ["x", "y", None, "None"]}),
    ],
    ids=["images", "vectors", "whole numbers", "single numbers", "texts", "rows", "rows of categories"],
)
def test_copies_are_in_one_group(different: Any) -> None:
    assert equal_groups(different[GROUPS]).tolist() == GROUPS


def test_vectors_are_equal_as_float32() -> None:
    vectors = np.array([[0.1, 0.0], [np.float64(np.float32(0.1)), -0.0], [0.1001, 0.0]])
    assert equal_groups(vectors).tolist() == [0, 0, 1]


@pytest.mark.parametrize("memory_gb", [4.0, 0.0])
def test_images_in_files_are_equal_by_their_pixels(tmp_path: Path, memory_gb: float) -> None:
    images = RNG.integers(0, 256, (4, 8, 8), dtype=np.uint8)
    for name, numbers in (("ant", GROUPS[:3]), ("bee", GROUPS[3:])):
        (tmp_path / name).mkdir()
        for place, number in enumerate(numbers):
            Image.fromarray(images[number]).save(tmp_path / name / f"{place}.{'png' if name == 'ant' else 'bmp'}")
    source = read_source(str(tmp_path), memory_gb=memory_gb)
    assert equal_groups(source.train_samples).tolist() == GROUPS
