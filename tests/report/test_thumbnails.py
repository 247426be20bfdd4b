"""Thumbnails, read back with Pillow."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dividemix.data.images import UnreadableImage
from dividemix.report.thumbnails import encode, encode_file


@pytest.mark.parametrize(
    ("shape", "size"),
    [((28, 28, 1), (28, 28)), ((600, 300, 3), (128, 256)), ((300, 600, 1), (256, 128)), ((2000, 2, 3), (1, 256))],
)
def test_is_a_small_picture_of_the_same_proportions(shape: tuple[int, int, int], size: tuple[int, int]) -> None:
    picture = Image.open(io.BytesIO(encode(np.full(shape, 200, np.uint8))))
    assert picture.format == "WEBP"
    assert picture.size == size
    assert np.abs(np.asarray(picture.convert("L")).astype(int) - 200).max() <= 4


def test_a_tiny_picture_keeps_every_pixel() -> None:
    image = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(encode(image))).convert("RGB")), image)


@pytest.mark.parametrize(("orientation", "size"), [(1, (256, 128)), (6, (128, 256)), (3, (256, 128))])
def test_a_photograph_is_whole_and_upright(tmp_path: Path, orientation: int, size: tuple[int, int]) -> None:
    """Red is where the camera's top left corner is; EXIF says where that belongs."""
    pixels = np.zeros((400, 800, 3), np.uint8)
    pixels[:200, :400] = (250, 0, 0)
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(pixels).save(tmp_path / "photo.jpg", exif=exif, quality=95)
    picture = Image.open(io.BytesIO(encode_file(tmp_path / "photo.jpg"))).convert("RGB")
    assert picture.size == size
    corners = {1: (0, 0), 6: (1, 0), 3: (1, 1)}  # of the red quarter: right, down
    right, down = corners[orientation]
    for x in (0, 1):
        for y in (0, 1):
            red = picture.getpixel((int((x + 0.5) * size[0] / 2), int((y + 0.5) * size[1] / 2)))[0]  # type: ignore[index]
            assert (red > 150) == ((x, y) == (right, down))


def test_a_file_that_is_gone_or_damaged_is_reported(tmp_path: Path) -> None:
    (tmp_path / "damaged.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    for name in ("gone.png", "damaged.png"):
        with pytest.raises(UnreadableImage):
            encode_file(tmp_path / name)
