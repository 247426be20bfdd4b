"""Image files of any mode and size, decoded by Pillow to uint8 of one size.

Transparent pixels are blended with white. 16-bit grey loses its low bits. Modes without a defined range (I, F) keep the
range that they seem to have (0..65535; 0..1 or 0..255), or are stretched from their lowest to their highest value. An
EXIF rotation is applied. Of an animation the first frame is used.
"""

import errno
import io
import re
import stat
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from dividemix.data.budget import Budget
from dividemix.data.crop import Crop
from dividemix.data.decoding_memory import decoding_bytes, plain_jpeg_bytes
from dividemix.data.eight_bits import eight_bits
from dividemix.data.jpeg import MOST_SCANS, decoded, has_too_many_scans, jpeg_content, plain_header, scale_of
from dividemix.errors import is_refusal, refused

if TYPE_CHECKING:
    from PIL import Image

Result = TypeVar("Result")
ImageLike: TypeAlias = "Path | bytes | Image.Image | Crop"
"""The path of an image file, its content, a Pillow image, or a part of an image file."""

MAX_PIXELS = 100_000_000  # the most that a header may claim; a decompression bomb claims more
DECODING = Budget(1_000_000_000)  # bytes of the images that all threads decode at a time

# Formats whose headers are checked on opening, and that need no other program: EPS, for one, would run Ghostscript.
_FORMATS = (
    *("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "AVIF", "JPEG2000"),
    *("QOI", "PCX", "SGI", "TGA"),  # TGA has no magic number, so it comes last
)
_JPEG = ("JPEG", "MPO")
_ORIENTATION = 0x0112  # the EXIF tag
_SIDEWAYS = (5, 6, 7, 8)  # its values that swap height and width
_SHARP = 2.0  # a cheap method first shrinks an image to at least this many times the needed size
_CALLERS = threading.Lock()  # held while an image of the caller is read: several threads may have the same one
_PILLOW = ("ignore", None, Warning, re.compile(r"PIL\."), 0)


class UnreadableImage(ValueError):  # noqa: N818
    """An image that cannot be decoded; the message is the reason, one line without the name of the file."""


def read_image(file: ImageLike, height: int, width: int, channels: int) -> NDArray[np.uint8]:
    """The image as uint8 (H, W, K), K 1 (grey) or 3 (RGB).

    It is resized (antialiased) so that it just covers H x W, with its aspect ratio kept, then cropped at the centre. An
    image of that size does not change. Raises UnreadableImage if it is missing, damaged, too large, or not an image,
    and InputError if the system refuses to read it.
    """
    mode = "L" if channels == 1 else "RGB"
    if isinstance(file, Crop):
        return _pixels(_covering(cropped(file, mode), width, height))
    if (pixels := _read_plain_jpeg(file, width, height, mode)) is not None:
        return pixels
    with _opened(file) as image:
        if image is file:
            with _CALLERS:
                orientation, image = _orientation(image), image.copy()
        else:
            orientation = _orientation(image)
        wanted = (height, width) if orientation in _SIDEWAYS else (width, height)
        extent: tuple[float, float] | None = None
        # This shrinks a JPEG for good while it is decoded. An image of the caller is a copy, which has no format.
        if image.format in _JPEG and (scale := scale_of(image.size, wanted)) > 1:
            drafted = image.draft(None, (image.width // scale, image.height // scale))
            extent = drafted[1][2:] if drafted else None
        with DECODING.taken(_needed(image)):
            return _pixels(_upright(_covering(_flattened(image, mode), *wanted, extent), orientation))


def _read_plain_jpeg(
    file: "Path | bytes | Image.Image", width: int, height: int, mode: str
) -> NDArray[np.uint8] | None:
    """The pixels of a plain JPEG file, as `read_image` gives them; None for others and what is damaged."""
    content = jpeg_content(file)
    header = None if content is None else plain_header(content)
    if content is None or header is None:
        return None
    scale = scale_of((header.width, header.height), (width, height))
    needed = plain_jpeg_bytes(header, scale)
    if not 0 < header.width * header.height <= MAX_PIXELS or needed > DECODING.num_bytes:
        return None
    try:
        with DECODING.taken(needed):
            image = _flattened(decoded(content, header, scale), mode)
            return _pixels(_covering(image, width, height, (header.width / scale, header.height / scale)))
    except (OSError, ValueError, MemoryError):
        return None


def _pixels(image: "Image.Image") -> NDArray[np.uint8]:
    """An image of mode L or RGB as uint8 (H, W, K), read-only; half the time that numpy takes to convert it."""
    return np.frombuffer(image.tobytes(), dtype=np.uint8).reshape(image.height, image.width, -1)


def read_whole(file: ImageLike, longest: int) -> NDArray[np.uint8]:
    """The whole image, upright, as uint8 (H, W, 3), made smaller if a side is longer than `longest`; for display.

    Raises UnreadableImage and InputError as `read_image`.
    """
    if isinstance(file, Crop):
        image = cropped(file, "RGB")
        image.thumbnail((longest, longest))
        return np.array(image)
    with _opened(file) as image:
        orientation = _orientation(image)
        image.draft(None, (longest, longest))
        with DECODING.taken(_needed(image)):
            image = _upright(_flattened(image, "RGB"), orientation)
            image.thumbnail((longest, longest))
            return np.array(image)


def probe(file: ImageLike) -> tuple[int, int, bool]:
    """Height, width (after an EXIF rotation) and whether the image is grey, from its header; errors as `read_image`."""
    if isinstance(file, Crop):
        height, width, is_grey = probe(file.path)
        left, top, right, bottom = _inside(file, width, height)
        return bottom - top, right - left, is_grey
    with _opened(file) as image, _CALLERS if image is file else nullcontext():
        height, width = image.size if _orientation(image) in _SIDEWAYS else image.size[::-1]
        return height, width, _is_grey(image)


def cropped(file: Crop, mode: str) -> "Image.Image":
    """The part of an image file, upright, in mode L or RGB; errors as `read_image`."""
    with _opened(file.path) as image, DECODING.taken(_needed(image)):
        orientation = _orientation(image)
        upright = _upright(_flattened(image, mode), orientation)
        return upright.crop(_inside(file, *upright.size))


def _inside(file: Crop, width: int, height: int) -> tuple[int, int, int, int]:
    box = file.inside(width, height)
    if box is None:
        raise UnreadableImage(f"the box is outside of the image, which has {width} x {height} pixels")
    return box


def result_or_reason(read: Callable[[ImageLike], Result], files: Sequence[ImageLike], row: int) -> Result | str:
    """What `read` returns for an image of a list, or the reason why the image is unreadable."""
    try:
        return read(files[row])
    except UnreadableImage as error:
        return str(error)


@cache
def image_suffixes() -> frozenset[str]:
    """Extensions of the image files that can be read: .png, .jpg, ..."""
    from PIL import Image

    formats = {*_known_formats(), "MPO"}  # an MPO is read as the JPEG it begins with
    return frozenset(suffix for suffix, name in Image.registered_extensions().items() if name in formats)


@cache
def _known_formats() -> tuple[str, ...]:
    """The formats that this build of Pillow supports."""
    from PIL import Image

    Image.init()
    return tuple(name for name in _FORMATS if name in Image.OPEN)


@contextmanager
def _opened(file: "Path | bytes | Image.Image") -> "Iterator[Image.Image]":
    """Open the image: read its header and check its size. Errors of the image become an UnreadableImage.

    A refusal of the system becomes an InputError: no image may be lost by it.
    """
    from PIL import Image

    # Damage is reported here, so Pillow's warnings of it are silenced; catch_warnings is not safe with threads.
    if list(warnings.filters[:1]) != [_PILLOW]:
        warnings.filterwarnings("ignore", module=_PILLOW[3].pattern)
    try:
        if isinstance(file, Image.Image):
            yield _checked(file)
            return
        if isinstance(file, Path) and not stat.S_ISREG(file.stat().st_mode):
            raise UnreadableImage("not a file")
        with io.BytesIO(file) if isinstance(file, bytes) else file.open("rb") as stream:
            if not stream.read(1):
                raise UnreadableImage("empty")
            with Image.open(stream, formats=_known_formats()) as image:
                yield _checked(image)
    except UnreadableImage:
        raise
    except Exception as error:  # Pillow's decoders raise exceptions of many kinds
        if is_refusal(error):
            raise refused(file if isinstance(file, Path) else "an image", error) from error
        raise UnreadableImage(_reason(error)) from error


def _checked(image: "Image.Image") -> "Image.Image":
    """Return the image; raise UnreadableImage unless its header claims a reasonable size."""
    width, height = image.size
    if width * height > MAX_PIXELS:
        raise UnreadableImage(f"claims {width} x {height} pixels, at most {MAX_PIXELS:,} are read")
    if width < 1 or height < 1:
        raise UnreadableImage(f"has {width} x {height} pixels")
    return image


def _needed(image: "Image.Image") -> int:
    """The bytes that decoding the image takes; UnreadableImage if they are too many, or it would take minutes."""
    if image.format in _JPEG and (stream := getattr(image, "fp", None)) is not None and has_too_many_scans(stream):
        raise UnreadableImage(f"has more than {MOST_SCANS} scans, which would take minutes to decode")
    needed = decoding_bytes(image)
    if needed > DECODING.num_bytes:
        claim = f"{image.width} x {image.height} pixels of mode {image.mode} take {needed / 1e9:.1f} GB"
        raise UnreadableImage(f"{claim} to decode, at most {DECODING.num_bytes / 1e9:g} GB are used")
    return needed


def _reason(error: Exception) -> str:
    """The error of Pillow or the system in one line."""
    from PIL import Image, UnidentifiedImageError

    if isinstance(error, UnidentifiedImageError):  # its message contains a memory address
        return "not an image, or damaged at the start"
    if isinstance(error, Image.DecompressionBombError):
        return f"claims too many pixels, at most {MAX_PIXELS:,} are read"
    if isinstance(error, OSError) and error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
        return "link to a file that does not exist" if Path(error.filename).is_symlink() else "no such file"
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read: {error.strerror}"
    words = " ".join(str(error).split())
    return f"damaged: {words[:150] or type(error).__name__}"


def _orientation(image: "Image.Image") -> int:
    """The EXIF orientation, 1 (upright) if there is none; Pillow rotates TIFF images itself."""
    from PIL import Image

    if image.format == "TIFF":
        return 1
    try:
        # Not image.getexif(), which decodes a whole PNG if it has no EXIF.
        return int(Image.Image.getexif(image).get(_ORIENTATION, 1))
    except Exception:  # damaged EXIF is no reason to lose the image
        return 1


def _upright(image: "Image.Image", orientation: int) -> "Image.Image":
    """The image rotated by its EXIF orientation."""
    from PIL.Image import Transpose as To

    mirrored = {2: To.FLIP_LEFT_RIGHT, 4: To.FLIP_TOP_BOTTOM, 5: To.TRANSPOSE, 7: To.TRANSVERSE}
    turns = mirrored | {3: To.ROTATE_180, 6: To.ROTATE_270, 8: To.ROTATE_90}
    return image.transpose(turns[orientation]) if orientation in turns else image


def _is_grey(image: "Image.Image") -> bool:
    """Whether the mode or the palette has no colour."""
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
    from PIL import Image, ImageCms

    if image.mode[0] in "IF":
        return Image.fromarray(eight_bits(np.asarray(image))).convert(mode)
    if image.mode == "LAB":  # Pillow converts it only by colour profiles
        profiles = ImageCms.createProfile("LAB"), ImageCms.createProfile("sRGB")
        converted = ImageCms.profileToProfile(image, *profiles, outputMode="RGB")
        assert converted is not None  # None only if done in place
        return converted.convert(mode)
    if image.has_transparency_data:
        straight = image.convert("LA") if image.mode == "La" else image
        canvas = Image.new("RGBA", image.size, "white")
        canvas.alpha_composite(straight.convert("RGBA"))
        return canvas.convert(mode)
    if image.mode == mode:
        image.load()  # convert would make a copy
        return image
    return image.convert(mode)


def _covering(
    image: "Image.Image", width: int, height: int, extent: tuple[float, float] | None = None
) -> "Image.Image":
    """The largest centred part with the aspect of width x height, resized to it.

    `extent` is how many columns and rows the picture has, if the last ones are only partly covered.
    """
    from PIL.Image import Resampling

    if image.size == (width, height):
        return image
    columns, rows = extent or image.size
    scale = min(columns / width, rows / height)
    left, top = (columns - scale * width) / 2, (rows - scale * height) / 2
    box = (max(left, 0), max(top, 0), min(columns - left, columns), min(rows - top, rows))
    return image.resize((width, height), Resampling.BICUBIC, box=box, reducing_gap=_SHARP)
