"""Decoding. Oracles: the pixels that the test put into each file, and numpy for scaling, blending and turning."""

import io
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageFile

from dividemix.data import images
from dividemix.data.images import UnreadableImage, image_suffixes, probe, read_image

RNG = np.random.default_rng(0)
GREY = RNG.integers(0, 256, (7, 9), dtype=np.uint8)
COLOUR = RNG.integers(0, 256, (7, 9, 3), dtype=np.uint8)


def encoded(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def blocks(height: int, width: int) -> np.ndarray:
    """Four quarters of one colour each, so that lossy formats and turns can be told apart: red, green / blue, grey."""
    image = np.zeros((height, width, 3), np.uint8)
    image[: height // 2, : width // 2] = (200, 0, 0)
    image[: height // 2, width // 2 :] = (0, 200, 0)
    image[height // 2 :, : width // 2] = (0, 0, 200)
    image[height // 2 :, width // 2 :] = (120, 120, 120)
    return image


# Each case: the file, whether it is grey, and its pixels in one channel or three.


def palette_file(levels: np.ndarray, **options: Any) -> bytes:
    image = Image.fromarray(GREY % len(levels)).convert("P")
    image.putdata((GREY % len(levels)).ravel().tolist())
    image.putpalette(levels.ravel().tolist())
    return encoded(image, **options)


def over_white(colour: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    share = alpha[..., None] / 255
    return np.rint(colour * share + 255 * (1 - share))


ALPHA = RNG.integers(0, 256, (7, 9), dtype=np.uint8)
PALETTE = RNG.integers(0, 256, (16, 3), dtype=np.uint8)
GREY_PALETTE = np.repeat(RNG.integers(0, 256, (16, 1), dtype=np.uint8), 3, axis=1)
DEEP = RNG.integers(0, 65536, (7, 9)).astype(np.uint16)
FLOATS = RNG.random((7, 9), dtype=np.float32)
MODES = {
    "1": (encoded(Image.fromarray(GREY > 99)), True, np.where(GREY > 99, 255, 0)),
    "L": (encoded(Image.fromarray(GREY)), True, GREY),
    "L, one level transparent": (
        encoded(Image.fromarray(GREY), transparency=int(GREY[0, 0])),
        True,
        np.where(GREY[0, 0] == GREY, 255, GREY),
    ),
    "LA": (
        encoded(Image.merge("LA", [Image.fromarray(GREY), Image.fromarray(ALPHA)])),
        True,
        over_white(GREY[..., None], ALPHA)[..., 0],
    ),
    "P": (palette_file(PALETTE), False, PALETTE[GREY % 16]),
    "P, grey": (palette_file(GREY_PALETTE), True, GREY_PALETTE[GREY % 16][..., 0]),
    "P, one colour transparent": (
        palette_file(PALETTE, transparency=3),
        False,
        np.where((GREY % 16 == 3)[..., None], 255, PALETTE[GREY % 16]),
    ),
    "P, colours half transparent": (
        palette_file(PALETTE, transparency=bytes(range(0, 256, 16))),
        False,
        over_white(PALETTE[GREY % 16], np.arange(0, 256, 16)[GREY % 16]),
    ),
    "P, BMP": (palette_file(GREY_PALETTE, kind="BMP"), True, GREY_PALETTE[GREY % 16][..., 0]),
    "RGB": (encoded(Image.fromarray(COLOUR)), False, COLOUR),
    "RGB, one colour transparent": (
        encoded(Image.fromarray(COLOUR), transparency=tuple(COLOUR[2, 3].tolist())),
        False,
        np.where((COLOUR[2, 3] == COLOUR).all(axis=-1, keepdims=True), 255, COLOUR),
    ),
    "RGBA": (encoded(Image.fromarray(np.dstack([COLOUR, ALPHA]))), False, over_white(COLOUR, ALPHA)),
    "RGBA, opaque": (encoded(Image.fromarray(np.dstack([COLOUR, np.full((7, 9), 255, np.uint8)]))), False, COLOUR),
    "RGBA, TIFF": (encoded(Image.fromarray(np.dstack([COLOUR, ALPHA])), "TIFF"), False, over_white(COLOUR, ALPHA)),
    "CMYK": (
        encoded(Image.frombytes("CMYK", (9, 7), np.dstack([255 - COLOUR, 0 * GREY]).tobytes()), "TIFF"),
        False,
        COLOUR,
    ),
    "I;16, PNG": (encoded(Image.fromarray(DEEP)), True, np.rint(DEEP / 257)),
    "I;16, TIFF": (encoded(Image.fromarray(DEEP), "TIFF"), True, np.rint(DEEP / 257)),
    "I;16B": (
        encoded(Image.frombytes("I;16B", (9, 7), DEEP.astype(">u2").tobytes()), "TIFF"),
        True,
        np.rint(DEEP / 257),
    ),
    "I, 16 bits": (encoded(Image.fromarray(DEEP.astype(np.int32)), "TIFF"), True, np.rint(DEEP / 257)),
    "I, negative": (
        encoded(Image.fromarray(DEEP.astype(np.int32) - 40_000), "TIFF"),
        True,
        np.rint((DEEP - float(DEEP.min())) * 255 / (float(DEEP.max()) - float(DEEP.min()))),
    ),
    "F, to 1": (encoded(Image.fromarray(FLOATS), "TIFF"), True, np.rint(FLOATS * 255.0)),
    "F, to 255": (encoded(Image.fromarray(GREY.astype(np.float32)), "TIFF"), True, GREY),
    "F, constant": (encoded(Image.fromarray(np.full((7, 9), -3, np.float32)), "TIFF"), True, 0 * GREY),
    "F, not a number": (
        encoded(Image.fromarray(np.where(GREY > 99, np.nan, FLOATS).astype(np.float32)), "TIFF"),
        True,
        np.where(GREY > 99, 0, np.rint(FLOATS * 255.0)),
    ),
    "GIF": (encoded(Image.fromarray(GREY), "GIF"), True, GREY),
    "PPM": (encoded(Image.fromarray(COLOUR), "PPM"), False, COLOUR),
    "PGM of 16 bits": (b"P5 9 7 65535\n" + DEEP.astype(">u2").tobytes(), True, np.rint(DEEP / 257)),
    "TGA": (encoded(Image.fromarray(COLOUR), "TGA"), False, COLOUR),
    "WebP": (encoded(Image.fromarray(COLOUR), "WEBP", lossless=True), False, COLOUR),
    "JPEG 2000": (encoded(Image.fromarray(COLOUR), "JPEG2000"), False, COLOUR),
    "PCX": (encoded(Image.fromarray(COLOUR), "PCX"), False, COLOUR),
    "SGI": (encoded(Image.fromarray(COLOUR), "SGI"), False, COLOUR),
}


@pytest.mark.parametrize("case", MODES)
def test_every_mode_gives_the_pixels_that_were_put_in(case: str) -> None:
    content, grey, expected = MODES[case]
    expected = expected if expected.ndim == 3 else expected[..., None]
    assert probe(content) == (7, 9, grey)
    image = read_image(content, 7, 9, 1 if grey else 3)
    assert image.dtype == np.uint8
    assert image.shape == expected.shape
    # Blending over white rounds in Pillow's own fixed-point way.
    np.testing.assert_allclose(image, expected, atol=1 if "RGBA" in case or "LA" in case or "half" in case else 0)


@pytest.mark.parametrize("case", MODES)
def test_every_mode_as_the_other_number_of_channels(case: str) -> None:
    """Grey as three equal channels; colour as its luma, 299 R + 587 G + 114 B in thousandths."""
    content, grey, _ = MODES[case]
    if grey:
        assert (read_image(content, 7, 9, 3) == read_image(content, 7, 9, 1)).all()
    else:
        luma = read_image(content, 7, 9, 3) @ [0.299, 0.587, 0.114]
        np.testing.assert_allclose(read_image(content, 7, 9, 1)[..., 0], luma, atol=1)


@pytest.mark.parametrize("mode", ["La", "PA", "RGBa", "RGBX", "YCbCr", "HSV", "LAB"])
def test_modes_that_a_program_can_hold(mode: str) -> None:
    """A flat colour survives its way into the mode and back (LAB: by Pillow's own colour management)."""
    flat = Image.new("RGB", (9, 7), (200, 100, 50))
    if mode == "LAB":
        from PIL import ImageCms

        image = ImageCms.profileToProfile(
            flat, ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB"), outputMode="LAB"
        )
    elif mode == "PA":
        image = flat.convert("P").convert("PA")
    else:
        image = flat.convert({"La": "LA", "RGBa": "RGBA"}.get(mode, mode)).convert(mode)
    assert image is not None
    pixels = read_image(image, 7, 9, 3)
    expected = np.array(
        flat.convert("L").convert("RGB") if mode == "La" else image.convert("RGB") if mode == "PA" else flat
    )
    np.testing.assert_allclose(pixels, expected, atol=4)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_is_undone(kind: str, orientation: int) -> None:
    """Oracle: the EXIF standard's table, what row 0 and column 0 of the stored pixels are, as numpy turns."""
    upright = blocks(32, 64)
    stored = {  # the pixels which, turned as the orientation says, are the upright image
        1: upright,
        2: upright[:, ::-1],
        3: upright[::-1, ::-1],
        4: upright[::-1],
        5: upright.transpose(1, 0, 2),
        6: np.rot90(upright),
        7: upright[::-1, ::-1].transpose(1, 0, 2),
        8: np.rot90(upright, -1),
    }[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    by_kind: dict[str, dict[str, int]] = {"JPEG": {"quality": 100, "subsampling": 0}, "WEBP": {"lossless": True}}
    options = by_kind.get(kind, {})
    content = encoded(Image.fromarray(np.ascontiguousarray(stored)), kind, exif=exif, **options)
    assert probe(content) == (32, 64, False)
    np.testing.assert_allclose(read_image(content, 32, 64, 3), upright, atol=6 if kind == "JPEG" else 0)


def test_an_orientation_that_is_none_is_passed_over() -> None:
    exif = Image.Exif()
    exif[0x0112] = 77
    assert (read_image(encoded(Image.fromarray(COLOUR), exif=exif), 7, 9, 3) == COLOUR).all()
    broken = encoded(Image.fromarray(COLOUR), exif=b"Exif\0\0II*\0\xff\xff\xff\xff garbage")
    assert (read_image(broken, 7, 9, 3) == COLOUR).all()


@pytest.mark.parametrize(
    "size", [(7, 9), (8, 8), (100, 300), (300, 100), (33, 65), (640, 480), (16, 1), (1, 16), (1, 1)]
)
@pytest.mark.parametrize("target", [(8, 8), (24, 24), (12, 20), (1, 1)])
def test_any_size_is_covered_and_cut_at_the_centre(size: tuple[int, int], target: tuple[int, int]) -> None:
    """Oracle: of a picture whose colour is its place, the result shows the place of each pixel's centre."""
    (height, width), (new_height, new_width) = size, target
    y, x = np.mgrid[:height, :width]
    picture = np.dstack([y * 255 / max(height - 1, 1), x * 255 / max(width - 1, 1), 0 * y]).astype(np.uint8)
    result = read_image(encoded(Image.fromarray(picture), compress_level=1), new_height, new_width, 3).astype(float)
    scale = min(height / new_height, width / new_width)
    for axis, (old, new) in enumerate(((height, new_height), (width, new_width))):
        place = (np.arange(new) + 0.5 - new / 2) * scale + old / 2 - 0.5
        expected = np.clip(place, 0, old - 1) * 255 / max(old - 1, 1)
        shown = result[..., axis].mean(axis=1 - axis)
        # A step from pixel to pixel is what an edge may be off by, where the filter has no further pixel to look at.
        np.testing.assert_allclose(shown, expected, atol=2 + 255 / max(old - 1, 1) * max(1, scale) * 0.35)


def test_shrinking_is_antialiased() -> None:
    """A chessboard of single pixels becomes its mean, not stripes of black and white."""
    board = (np.indices((400, 400)).sum(axis=0) % 2 * 255).astype(np.uint8)
    for content in (encoded(Image.fromarray(board)), encoded(Image.fromarray(board), "JPEG", quality=100)):
        assert np.abs(read_image(content, 25, 25, 1).astype(int) - 127).max() <= 3


@pytest.mark.parametrize("orientation", [1, 6])
def test_a_large_jpeg_is_shrunk_while_it_is_decoded(monkeypatch: pytest.MonkeyPatch, orientation: int) -> None:
    """And looks as when it is decoded whole, to the small difference that another filter makes."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    content = encoded(Image.fromarray(blocks(1000, 1600)), "JPEG", quality=95, exif=exif)
    sizes = []
    flattened = images._flattened

    def watched(image: Image.Image, mode: str) -> Image.Image:
        sizes.append(image.size)
        return flattened(image, mode)

    monkeypatch.setattr(images, "_flattened", watched)
    small = read_image(content, 50, 40, 3)
    monkeypatch.setattr(Image.Image, "draft", lambda *_: None)
    monkeypatch.setattr("PIL.JpegImagePlugin.JpegImageFile.draft", lambda *_: None)
    whole = read_image(content, 50, 40, 3)
    assert sizes[1] == (1600, 1000)
    assert sizes[0][0] <= 400
    assert np.abs(small.astype(int) - whole).mean() < 1.5


def test_paths_bytes_and_pillow_images_are_the_same(tmp_path: Path) -> None:
    content = encoded(Image.fromarray(COLOUR))
    (tmp_path / "a.png").write_bytes(content)
    with Image.open(io.BytesIO(content)) as image:
        for file in (tmp_path / "a.png", content, image):
            assert probe(file) == (7, 9, False)
            assert (read_image(file, 7, 9, 3) == COLOUR).all()


def test_of_an_animation_the_first_frame_is_read() -> None:
    frames = [Image.fromarray(GREY), Image.fromarray(255 - GREY)]
    content = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert (read_image(content, 7, 9, 1)[..., 0] == GREY).all()


def test_probe_decodes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise AssertionError("decoded")

    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", refused)
    for case in ("L", "P, grey", "P, one colour transparent", "RGB", "RGBA", "I;16, PNG", "PPM"):
        assert probe(MODES[case][0])[:2] == (7, 9)


def test_a_header_that_claims_too_much_is_refused_before_decoding(monkeypatch: pytest.MonkeyPatch) -> None:
    header = b"BM" + (54).to_bytes(4, "little") + bytes(4) + (54).to_bytes(4, "little") + (40).to_bytes(4, "little")
    for side in (10_001, 12_000, 60_000):  # above our bound; where Pillow warns; where Pillow refuses
        claim = side.to_bytes(4, "little") * 2
        bomb = header + claim + (1).to_bytes(2, "little") + (24).to_bytes(2, "little") + bytes(24)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(UnreadableImage, match=r"at most 100,000,000 are read"):
                read_image(bomb, 8, 8, 3)
            with pytest.raises(UnreadableImage, match=r"claims"):
                probe(bomb)
    monkeypatch.setattr(images, "MAX_PIXELS", 62)
    with pytest.raises(UnreadableImage, match="claims 9 x 7 pixels"):
        read_image(encoded(Image.fromarray(GREY)), 8, 8, 1)


def test_nothing_that_would_run_another_program_is_opened() -> None:
    """Pillow hands EPS to Ghostscript."""
    with pytest.raises(UnreadableImage, match="not an image"):
        read_image(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 7\n%%EndComments\nshowpage\n", 7, 9, 3)
    assert not {".eps", ".ps", ".pdf", ".h5", ".mpg"} & image_suffixes()
    assert {".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff"} <= image_suffixes()


def test_what_is_missing_or_no_file(tmp_path: Path) -> None:
    with pytest.raises(UnreadableImage, match=r"^no such file$"):
        read_image(tmp_path / "none.png", 8, 8, 3)
    with pytest.raises(UnreadableImage, match=r"^not a file$"):
        read_image(tmp_path, 8, 8, 3)
    with pytest.raises(UnreadableImage, match=r"^empty$"):
        read_image(b"", 8, 8, 3)
    with pytest.raises(UnreadableImage, match=r"^not an image"):
        read_image(b"hello", 8, 8, 3)


def test_importing_the_readers_loads_neither_pillow_nor_torch() -> None:
    script = (
        "import sys, dividemix.data.readers, dividemix.data.readers.arrays\n"
        "sys.exit(', '.join({'PIL', 'torch', 'pyarrow'} & set(sys.modules)) or 0)"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")


def test_an_image_of_the_callers_keeps_its_size_and_pixels() -> None:
    """A JPEG that is decoded small stays small: only one that was opened here may be."""
    content = encoded(Image.fromarray(blocks(400, 600)), "JPEG", quality=95)
    image = Image.open(io.BytesIO(content))
    small = read_image(image, 20, 30, 3)
    assert image.size == (600, 400)
    np.testing.assert_array_equal(np.asarray(image), np.asarray(Image.open(io.BytesIO(content))))
    assert np.abs(small.astype(int) - read_image(content, 20, 30, 3)).mean() < 4  # reduced in another way, not equal


@pytest.mark.parametrize("orientation", [1, 6])
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF"])
def test_an_image_of_the_callers_is_read_as_its_file(kind: str, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    content = encoded(Image.fromarray(blocks(12, 18)), kind, exif=exif)
    image = Image.open(io.BytesIO(content))
    assert probe(image) == probe(content) == ((18, 12, False) if orientation == 6 else (12, 18, False))
    np.testing.assert_array_equal(read_image(image, 12, 12, 3), read_image(content, 12, 12, 3))


def test_threads_do_not_decode_one_image_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list may hold the same image twice. Decoding is made slow; two at once would be seen inside."""
    image = Image.open(io.BytesIO(encoded(Image.fromarray(COLOUR))))
    load, inside, most = type(image).load, [], []

    def slow_load(self: ImageFile.ImageFile) -> object:
        if self is not image:
            return load(self)
        inside.append(1)
        most.append(len(inside))
        threading.Event().wait(0.01)
        try:
            return load(self)
        finally:
            inside.pop()

    monkeypatch.setattr(type(image), "load", slow_load)
    with ThreadPoolExecutor(4) as pool:
        for pixels in pool.map(lambda _: read_image(image, 7, 9, 3), range(8)):
            np.testing.assert_array_equal(pixels, COLOUR)
    assert max(most) == 1
