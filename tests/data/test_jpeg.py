"""JPEG files that are read without Pillow's header. Oracle: the same file by Pillow's own way of opening it."""

import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from dividemix.data import images
from dividemix.data.images import UnreadableImage, read_image
from dividemix.data.jpeg import MOST_SCANS, JpegHeader, plain_header, scale_of

RNG = np.random.default_rng(0)
SMOOTH = Image.fromarray(RNG.integers(0, 256, (9, 13, 3), dtype=np.uint8)).resize((203, 141), Image.Resampling.BICUBIC)


def jpeg(image: Image.Image = SMOOTH, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", **options)
    return buffer.getvalue()


PLAIN = {
    "baseline": jpeg(),
    "progressive": jpeg(progressive=True),
    "full colour": jpeg(subsampling=0, quality=95),
    "own tables": jpeg(optimize=True),
    "restarts": jpeg(restart_marker_rows=1),
    "comment": jpeg(comment=b"a comment"),
    "not YCbCr": jpeg(keep_rgb=True),
    "grey": jpeg(SMOOTH.convert("L")),
    "one pixel": jpeg(SMOOTH.resize((1, 1))),
}
OTHER = {
    "EXIF": jpeg(exif=Image.Exif()),
    "four channels": jpeg(SMOOTH.convert("CMYK")),
    "colour profile": jpeg(icc_profile=b"a profile"),
    "PNG": b"\x89PNG\r\n\x1a\n" + bytes(30),
    "empty": b"",
    "only its start": jpeg()[:3],
    "junk between segments": jpeg()[:2] + b"\xff\xff" + jpeg()[2:],
}


def outcome(file: bytes | Path, height: int, width: int, channels: int) -> bytes | str:
    """The pixels, or why there are none."""
    try:
        return read_image(file, height, width, channels).tobytes()
    except UnreadableImage as error:
        return str(error)


@pytest.mark.parametrize("name", PLAIN)
def test_a_plain_file_has_the_bits_that_pillow_gives(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    content, path = PLAIN[name], tmp_path / "a.JPG"
    path.write_bytes(content)
    with Image.open(io.BytesIO(content)) as image:
        assert plain_header(content) == JpegHeader(image.mode, *image.size, in_passes=name == "progressive")
    targets = [(141, 203, 3), (141, 203, 1), (32, 32, 3), (17, 25, 3), (100, 40, 3), (300, 300, 1)]
    with monkeypatch.context() as changed:
        changed.setattr(images, "_opened", None)  # Pillow is not asked
        found = [(outcome(content, *target), outcome(path, *target)) for target in targets]
    monkeypatch.setattr(images, "plain_header", lambda _: None)
    for target, ours in zip(targets, found, strict=True):
        assert ours == (outcome(content, *target),) * 2


@pytest.mark.parametrize("name", OTHER)
def test_pillow_opens_all_others(name: str) -> None:
    assert plain_header(OTHER[name]) is None


def test_damage_is_reported_as_pillow_reports_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 400 files with one wrong byte or a lost end: the same pixels, or the same reason."""
    damaged = []
    for _ in range(200):
        content = bytearray(PLAIN["baseline" if RNG.random() < 0.5 else "progressive"])
        damaged.append(bytes(content[: RNG.integers(len(content))]))
        content[RNG.integers(min(len(content), 800))] ^= 1 << RNG.integers(8)
        damaged.append(bytes(content))
    ours = [outcome(content, 20, 20, 3) for content in damaged]
    assert {type(one) for one in ours} == {bytes, str}
    monkeypatch.setattr(images, "plain_header", lambda _: None)
    assert ours == [outcome(content, 20, 20, 3) for content in damaged]


@pytest.mark.parametrize(
    ("size", "wanted", "scale"),
    [
        *[((128, 128), (128, 128), 1), ((128, 128), (96, 96), 1), ((128, 128), (64, 64), 2), ((128, 128), (32, 32), 4)],
        *[((128, 128), (16, 16), 8), ((128, 128), (42, 42), 2), ((128, 128), (43, 43), 1), ((500, 96), (32, 32), 2)],
        *[((2000, 1500), (32, 32), 8), ((1, 1), (32, 32), 1), ((130, 128), (64, 64), 1)],
    ],
)
def test_a_file_is_decoded_at_the_wanted_size_or_at_1_5_times_that_or_more(
    size: tuple[int, int], wanted: tuple[int, int], scale: int
) -> None:
    assert scale_of(size, wanted) == scale


@pytest.mark.parametrize(("orientation", "turns"), [(None, 0), (1, 0), (3, 2), (6, 3)])
def test_a_picture_that_is_decoded_small_keeps_its_place(orientation: int | None, turns: int) -> None:
    """Of 203 columns at half scale, 101.5 show the picture. Oracle: the file decoded whole, then resized."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    options: dict[str, Any] = {} if orientation is None else {"exif": exif}
    content = jpeg(quality=95, subsampling=0, **options)
    left, top = 0, (141 - 34 * 203 / 50) / 2
    with Image.open(io.BytesIO(content)) as image:
        box = (left, top, 203 - left, 141 - top)
        whole = np.asarray(image.convert("RGB").resize((50, 34), Image.Resampling.BICUBIC, box=box)).astype(int)
    small = read_image(content, *((50, 34) if turns == 3 else (34, 50)), 3)
    assert np.abs(small - np.rot90(whole, turns)).max() <= 3


def test_a_picture_too_large_is_refused_as_pillow_opens_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "MAX_PIXELS", 203 * 141 - 1)
    assert outcome(PLAIN["baseline"], 8, 8, 3) == "claims 203 x 141 pixels, at most 28,622 are read"


@pytest.mark.skipif(os.name != "posix", reason="made with a POSIX call")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.jpg")
    assert outcome(tmp_path / "a.jpg", 8, 8, 3) == "not a file"


def with_scans(content: bytes, num_scans: int) -> bytes:
    """The file with its last scan repeated until it has so many."""
    last = content.rindex(b"\xff\xda")
    return content[:-2] + content[last:-2] * (num_scans - content.count(b"\xff\xda")) + content[-2:]


@pytest.mark.parametrize("exif", [None, Image.Exif()])
def test_a_file_with_hundreds_of_scans_is_refused(exif: Image.Exif | None) -> None:
    """Each is a pass over all pixels: 100,000 fit into 16 MB. The decoder itself reads them to the end."""
    content = jpeg(progressive=True) if exif is None else jpeg(progressive=True, exif=exif)
    assert isinstance(outcome(with_scans(content, MOST_SCANS), 20, 20, 3), bytes)
    refused = outcome(with_scans(content, MOST_SCANS + 1), 20, 20, 3)
    assert refused == "has more than 200 scans, which would take minutes to decode"


def test_a_first_scan_of_one_channel_is_known_as_one_of_several() -> None:
    """The decoder then keeps the whole picture, also if the file is not progressive."""
    content = bytearray(jpeg())
    at = content.index(b"\xff\xda")
    content[at + 2 : at + 12] = b"\0\x08\x01\x01\0\0\x3f\0"
    header = plain_header(bytes(content))
    assert header is not None
    assert header.in_passes
