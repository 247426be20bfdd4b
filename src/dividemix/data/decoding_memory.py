"""How much memory decoding an image takes, known from its header. The figures are measured, in bytes per pixel."""

from typing import TYPE_CHECKING

from dividemix.data.jpeg import JpegHeader, bytes_in_passes

if TYPE_CHECKING:
    from PIL import Image

_EIGHT_BIT = 8  # while an image is converted: Pillow takes up to 4 for a copy
_OTHER = 16  # of transparent images and those of 16 bits or more, which need more copies
# Decoders that keep more than the picture itself: eight bits, other.
_BY_FORMAT = {"AVIF": (11, 20), "WEBP": (17, 25), "JPEG2000": (20, 29)}


def decoding_bytes(image: "Image.Image") -> int:
    """The bytes that decoding an image takes, which Pillow has opened."""
    from PIL.JpegImagePlugin import JpegImageFile

    is_plain = image.mode in ("1", "L", "P", "RGB", "YCbCr", "CMYK", "HSV") and not image.has_transparency_data
    plain, other = _BY_FORMAT.get(image.format or "", (_EIGHT_BIT, _OTHER))
    needed = image.width * image.height * (plain if is_plain else other)
    if not isinstance(image, JpegImageFile):
        return needed
    scale = image.decoderconfig[0] if image.decoderconfig else 1  # at which it will be decoded
    whole = image.width * scale * image.height * scale
    return max(needed, bytes_in_passes(whole, len(image.getbands()), scale))


def plain_jpeg_bytes(header: JpegHeader, scale: int) -> int:
    """The bytes that decoding a plain JPEG file at a scale takes."""
    num_pixels = header.width * header.height
    needed = num_pixels // scale**2 * _EIGHT_BIT
    return max(needed, bytes_in_passes(num_pixels, len(header.mode), scale)) if header.in_passes else needed
