"""Image files of any mode and size, decoded by Pillow to uint8 of one size.

What comes out of a mode: transparent pixels lie over white; 16-bit grey loses its low bits; the modes without a range
of their own (I, F) keep a range they seem to have (0..65535; 0..1 or 0..255) and are else stretched from their lowest
to their highest value; an EXIF rotation is applied; of an animation the first frame is taken.
"""

import io
import re
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL import Image

ImageLike: TypeAlias = "Path | bytes | Image.Image"
"""An image file, its content, or an image that Pillow holds already."""

MAX_PIXELS = 100_000_000  # what a header may claim; a decompression bomb claims more

# Formats whose headers are checked on opening and that no other program decodes: EPS, for one, would run Ghostscript.
_FORMATS = (
    *("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "AVIF", "JPEG2000"),
    *("QOI", "PCX", "SGI", "TGA"),  # TGA has no magic number, so it comes last
)
_ORIENTATION = 0x0112  # the EXIF tag
_SIDEWAYS = (5, 6, 7, 8)  # its values that swap height and width
_SHARP = 2.0  # an image is first shrunk in a cheap way, while it stays this many times larger than needed
_CALLERS = threading.Lock()  # held where an image of the caller's is looked into: threads may have the same one
_PILLOW = ("ignore", None, Warning, re.compile(r"PIL\."), 0)


class UnreadableImage(ValueError):  # noqa: N818
    """An image that cannot be decoded; the message is the reason, one line without the file's name."""


def read_image(file: ImageLike, height: int, width: int, channels: int) -> NDArray[np.uint8]:
    """The image as uint8 (H, W, K), K 1 (grey) or 3 (RGB).

    It is resized (antialiased) so that it just covers H x W, keeping its aspect, and cropped at the centre; an image
    of that size stays as it is.

    Raises:
        UnreadableImage: for a file that is missing, damaged, too large, or no image.
    """
    with _opened(file) as image:
        if image is file:
            with _CALLERS:
                orientation, image = _orientation(image), image.copy()
        else:
            orientation = _orientation(image)
            enough = (round(_SHARP * width), round(_SHARP * height))
            # A JPEG shrinks while it is decoded, and stays so: that is not done to an image of the caller's.
            image.draft(None, enough[::-1] if orientation in _SIDEWAYS else enough)
        image = _upright(_flattened(image, "L" if channels == 1 else "RGB"), orientation)
        return np.array(_covering(image, width, height)).reshape(height, width, channels)


def probe(file: ImageLike) -> tuple[int, int, bool]:
    """Height, width and whether the image is grey, from its header alone; an EXIF rotation is considered.

    Raises:
        UnreadableImage: as `read_image`, for what the header shows.
    """
    with _opened(file) as image, _CALLERS if image is file else nullcontext():
        width, height = image.size
        if _orientation(image) in _SIDEWAYS:
            height, width = width, height
        return height, width, _is_grey(image)


@cache
def image_suffixes() -> frozenset[str]:
    """Endings of image files that are read: .png, .jpg, ..."""
    from PIL import Image

    formats = {*_known_formats(), "MPO"}  # an MPO is read as the JPEG it begins with
    return frozenset(suffix for suffix, name in Image.registered_extensions().items() if name in formats)


@cache
def _known_formats() -> tuple[str, ...]:
    """Those of the formats that this Pillow was built with."""
    from PIL import Image

    Image.init()
    return tuple(name for name in _FORMATS if name in Image.OPEN)


@contextmanager
def _opened(file: ImageLike) -> "Iterator[Image.Image]":
    """The image with its header read and its size checked; all that goes wrong with it is an UnreadableImage."""
    from PIL import Image

    _mute_pillow()
    try:
        if isinstance(file, Image.Image):
            yield _checked(file)
            return
        if isinstance(file, Path) and not file.is_file():
            raise UnreadableImage("not a file" if file.exists() else "no such file")
        with io.BytesIO(file) if isinstance(file, bytes) else file.open("rb") as stream:
            if not stream.read(1):
                raise UnreadableImage("empty")
            with Image.open(stream, formats=_known_formats()) as image:
                yield _checked(image)
    except UnreadableImage:
        raise
    except Exception as error:  # Pillow's decoders raise whatever they stumble over
        raise UnreadableImage(_reason(error)) from error


def _mute_pillow() -> None:
    """Pillow warns of damage that is reported here; catch_warnings is no help, for it is not made for threads."""
    if list(warnings.filters[:1]) != [_PILLOW]:
        warnings.filterwarnings("ignore", module=_PILLOW[3].pattern)


def _checked(image: "Image.Image") -> "Image.Image":
    """The image, unless its header claims too much."""
    width, height = image.size
    if width * height > MAX_PIXELS:
        raise UnreadableImage(f"claims {width} x {height} pixels, at most {MAX_PIXELS:,} are read")
    if width < 1 or height < 1:
        raise UnreadableImage(f"has {width} x {height} pixels")
    return image


def _reason(error: Exception) -> str:
    """One line on what Pillow or the system complained of."""
    from PIL import Image, UnidentifiedImageError

    if isinstance(error, UnidentifiedImageError):  # its own words hold an address in memory
        return "not an image, or damaged at its beginning"
    if isinstance(error, Image.DecompressionBombError):
        return f"claims too many pixels, at most {MAX_PIXELS:,} are read"
    if isinstance(error, MemoryError):
        return "not enough memory to decode it"
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read: {error.strerror}"
    words = " ".join(str(error).split())
    return f"damaged: {words[:150] or type(error).__name__}"


def _orientation(image: "Image.Image") -> int:
    """The EXIF orientation, 1 (upright) where there is none; TIFF images are turned by Pillow itself."""
    from PIL import Image

    if image.format == "TIFF":
        return 1
    try:
        # Not image.getexif(), which for a PNG without EXIF decodes all of it.
        return int(Image.Image.getexif(image).get(_ORIENTATION, 1))
    except Exception:  # damaged EXIF is no reason to lose the image
        return 1


def _upright(image: "Image.Image", orientation: int) -> "Image.Image":
    """The image turned as its EXIF orientation says."""
    from PIL.Image import Transpose

    turns = {
        2: Transpose.FLIP_LEFT_RIGHT,
        3: Transpose.ROTATE_180,
        4: Transpose.FLIP_TOP_BOTTOM,
        5: Transpose.TRANSPOSE,
        6: Transpose.ROTATE_270,
        7: Transpose.TRANSVERSE,
        8: Transpose.ROTATE_90,
    }
    return image.transpose(turns[orientation]) if orientation in turns else image


def _is_grey(image: "Image.Image") -> bool:
    """Whether the mode has no colour, or the palette holds none."""
    if image.mode in ("P", "PA") and image.palette is not None:
        order, levels = image.palette.getdata()
        if order[:3] not in ("RGB", "BGR") or ";" in order:
            return False
        colours = np.frombuffer(bytes(levels), dtype=np.uint8)
        colours = colours[: len(colours) // len(order) * len(order)].reshape(-1, len(order))
        return bool((colours[:, :1] == colours[:, 1:3]).all())
    return image.mode in ("1", "L", "LA", "La") or image.mode[0] in "IF"


def _flattened(image: "Image.Image", mode: str) -> "Image.Image":
    """The image decoded, in mode L or RGB."""
    from PIL import Image

    if image.mode[0] in "IF":
        return Image.fromarray(_eight_bits(np.asarray(image))).convert(mode)
    if image.mode == "LAB":
        return _from_lab(image).convert(mode)
    if image.has_transparency_data:
        if image.mode == "La":
            image = image.convert("LA")
        canvas = Image.new("RGBA", image.size, "white")
        canvas.alpha_composite(image.convert("RGBA"))
        image = canvas
    return image.convert(mode)


def _from_lab(image: "Image.Image") -> "Image.Image":
    """A CIELAB image as RGB, which Pillow converts by colour profiles only."""
    from PIL import ImageCms

    lab, rgb = ImageCms.createProfile("LAB"), ImageCms.createProfile("sRGB")
    converted = ImageCms.profileToProfile(image, lab, rgb, outputMode="RGB")
    assert converted is not None  # it is, unless done in place
    return converted


def _eight_bits(values: NDArray[Any]) -> NDArray[np.uint8]:
    """Grey values of 16 bits or more, or floats, as uint8."""
    levels = np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    low, high = float(levels.min()), float(levels.max())
    for top in (1, 255) if values.dtype.kind == "f" else (65535,):
        if low >= 0 and high <= top:
            return np.rint(levels * (255 / top)).astype(np.uint8)
    return np.rint((levels - low) * (255 / (high - low or 1.0))).astype(np.uint8)


def _covering(image: "Image.Image", width: int, height: int) -> "Image.Image":
    """The largest centred part with the aspect of width x height, resized to it."""
    from PIL.Image import Resampling

    if image.size == (width, height):
        return image
    scale = min(image.width / width, image.height / height)
    left, top = (image.width - scale * width) / 2, (image.height - scale * height) / 2
    box = (max(left, 0), max(top, 0), min(image.width - left, image.width), min(image.height - top, image.height))
    return image.resize((width, height), Resampling.BICUBIC, box=box, reducing_gap=_SHARP)
