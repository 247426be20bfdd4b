"""Small image files for the tests of the readers."""

import io
from pathlib import Path

import numpy as np
from PIL import Image


def pixels(number: int, height: int = 8, width: int = 8, channels: int = 3) -> np.ndarray:
    """Random uint8 (H, W, K) that depends on the number alone."""
    return np.random.default_rng([number, 5]).integers(0, 256, (height, width, channels), dtype=np.uint8)


def encoded(image: np.ndarray, kind: str = "PNG") -> bytes:
    """The file's content; (H, W, 1) is saved as grey."""
    buffer = io.BytesIO()
    Image.fromarray(image[..., 0] if image.shape[2] == 1 else image).save(buffer, kind)
    return buffer.getvalue()


def write_png(path: Path, number: int, height: int = 8, width: int = 8, channels: int = 3) -> np.ndarray:
    """Write `pixels` to a PNG file, whose folders are made; returns the pixels."""
    image = pixels(number, height, width, channels)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encoded(image))
    return image
