"""Thumbnails, read back with Pillow."""

import io

import numpy as np
import pytest
from PIL import Image

from dividemix.report.thumbnails import encode


@pytest.mark.parametrize(
    ("shape", "size"),
    [((28, 28, 1), (28, 28)), ((600, 300, 3), (48, 96)), ((300, 600, 1), (96, 48)), ((2000, 2, 3), (1, 96))],
)
def test_is_a_small_picture_of_the_same_proportions(shape: tuple[int, int, int], size: tuple[int, int]) -> None:
    picture = Image.open(io.BytesIO(encode(np.full(shape, 200, np.uint8))))
    assert picture.format == "WEBP"
    assert picture.size == size
    assert np.abs(np.asarray(picture.convert("L")).astype(int) - 200).max() <= 4


def test_a_tiny_picture_keeps_every_pixel() -> None:
    image = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(encode(image))).convert("RGB")), image)
