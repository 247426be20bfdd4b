"""JPEG files: the header of a plain one, read without Pillow, and the scale at which an image is decoded.

Pillow takes as long to open a small JPEG file as to decode it. A plain file needs only its size and number of channels:
its pixels are then decoded by the same decoder, to the same bits. Pillow opens all others: those with EXIF, several
pictures, or four channels, and what is damaged.
"""

import io
import re
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from PIL import Image

_START = b"\xff\xd8\xff"
_SCAN = 0xDA  # the compressed pixels begin
_PROGRESSIVE = 0xC2
_FRAMES = (0xC0, 0xC1, _PROGRESSIVE)  # the segment with size and channels; the others: baseline, extended
_PLAIN = (0xC4, 0xDB, 0xDD, 0xE0, 0xEE, 0xFE, *_FRAMES)  # tables, restart interval, JFIF, Adobe, comment
_MODES = {1: "L", 3: "RGB"}
_SCALES = (8, 4, 2)  # at which the decoder can shrink an image
_SHARP = 1.5  # it shrinks to at least this many times the needed size, and the resize does the rest
_MOST_BYTES = 1 << 24  # of a file that is read at once
_SCAN_HEADER = re.compile(rb"\xff\xda\x00(?:\x06\x00|\x08\x01|\x0a\x02|\x0c\x03|\x0e\x04)")
MOST_SCANS = 200  # usual files have about ten; a hostile one asks for a pass over 100 million pixels in ten bytes


class JpegHeader(NamedTuple):
    """What the header of a plain JPEG file says."""

    mode: str  # L or RGB
    width: int
    height: int
    in_passes: bool  # whether its pixels are in several scans


def jpeg_content(file: object) -> bytes | None:
    """The bytes of what may be a JPEG file: content, or a path; None if they are too many, or cannot be read."""
    if isinstance(file, bytes):
        return file
    if not isinstance(file, Path) or file.suffix.lower() not in (".jpg", ".jpeg"):
        return None
    try:
        if not file.is_file():  # a pipe would be waited for
            return None
        with file.open("rb") as stream:
            content = stream.read(_MOST_BYTES + 1)
    except (OSError, ValueError):
        return None
    return content if len(content) <= _MOST_BYTES else None


def plain_header(content: bytes) -> JpegHeader | None:
    """The header of a JPEG file, None unless the file begins as a plain one, and has a usual number of scans."""
    if content[:3] != _START:
        return None
    header, position = None, 2
    while len(segment := content[position : position + 10]) == 10 and segment[0] == 0xFF:
        kind = segment[1]
        if kind == _SCAN and header is not None:
            header = header._replace(in_passes=header.in_passes or _MODES.get(segment[4]) != header.mode)
            return None if header.in_passes and has_too_many_scans(io.BytesIO(content)) else header
        if kind not in _PLAIN or (kind in _FRAMES and header is not None):
            return None
        length = int.from_bytes(segment[2:4], "big")
        if kind in _FRAMES:
            mode = _MODES.get(segment[9])
            if mode is None or segment[4] != 8 or length != 8 + 3 * segment[9]:
                return None
            height, width = int.from_bytes(segment[5:7], "big"), int.from_bytes(segment[7:9], "big")
            header = JpegHeader(mode, width, height, in_passes=kind == _PROGRESSIVE)
        position += 2 + length
    return None


def has_too_many_scans(stream: IO[bytes]) -> bool:
    """Whether a JPEG file asks for more passes over the picture than any useful one. The stream stays where it is."""
    place, num_scans = stream.tell(), 0
    stream.seek(0)
    while part := stream.read(_MOST_BYTES):
        num_scans += sum(1 for _ in _SCAN_HEADER.finditer(part))
    stream.seek(place)
    return num_scans > MOST_SCANS


def bytes_in_passes(num_pixels: int, num_channels: int, scale: int) -> int:
    """The bytes that decoding a file of several scans takes.

    They are the coefficients of the whole picture, two bytes each, and the image at its scale.
    """
    return num_pixels * num_channels * 2 + num_pixels // scale**2 * 4


def scale_of(size: tuple[int, int], wanted: tuple[int, int]) -> int:
    """How many times smaller (1, 2, 4 or 8) an image is decoded that is needed in another size (both: width, height).

    Decoding at half scale is the mean of two by two pixels, nearly. If that is the size that is needed, it is taken;
    otherwise 1.5 times that size or more is left for a better filter.
    """
    gap = min(size[0] / wanted[0], size[1] / wanted[1])
    for scale in _SCALES if gap >= _SCALES[-1] else ():
        if gap >= _SHARP * scale or size == (scale * wanted[0], scale * wanted[1]):
            return scale
    return 1


def decoded(content: bytes, header: JpegHeader, scale: int) -> "Image.Image":
    """The image of a plain JPEG file, at a smaller scale. Raises ValueError or OSError if it is damaged."""
    from PIL import Image

    size = -(-header.width // scale), -(-header.height // scale)
    return Image.frombytes(header.mode, size, content, "jpeg", header.mode, "", scale, 0)
