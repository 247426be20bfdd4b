"""Images and vectors of a Python program, one by one or all together, as the package stores them.

Shapes: N samples, H x W pixels, K channels (1 or 3), D numbers in a vector.
"""

from collections.abc import Iterable
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dividemix.data.images import ImageLike
from dividemix.data.source import Images
from dividemix.errors import InputError

_DARKEST = 16  # no data set with levels from 0 to 255 is so dark that none is above this


def is_vector(item: Any) -> bool:
    """Whether an item of a list is a vector: an array of one dimension, or a list that begins with a number."""
    if isinstance(item, np.ndarray):
        return item.ndim == 1
    return isinstance(item, list | tuple) and len(item) > 0 and isinstance(item[0], Real)


def as_vectors(items: Any, where: str) -> NDArray[np.float32]:
    """Lists of numbers, one for each sample, as vectors (N, D); else InputError."""
    try:
        vectors = np.asarray(list(items), dtype=np.float32)
    except (ValueError, TypeError) as error:
        raise InputError(f"{where} has lists of different lengths, or other things than numbers") from error
    if vectors.ndim != 2:
        raise InputError(
            f"{where} has values of shape {vectors.shape[1:]}: must be a vector of numbers for each sample"
        )
    return vectors


def array_or_list(data: Any, where: str) -> NDArray[Any] | list[Any]:
    """An array or tensor as an array of numbers; a list, or an array of objects, as a list; else InputError."""
    refuse_hidden(data, where)
    data = without_torch(data, where)
    if isinstance(data, np.ndarray) and data.dtype.kind in "biufc":
        return data
    if isinstance(data, np.ndarray) and data.ndim != 1:
        raise InputError(f"{where} has type {data.dtype} and shape {data.shape}: must have numbers")
    if not isinstance(data, list | tuple | np.ndarray):
        raise InputError(
            f"{where} is {type(data).__name__}: must be an array, a tensor, a list of images or paths, "
            "or a data set with columns"
        )
    return [without_torch(item, f"{where}[{number}]") for number, item in enumerate(data)]


def refuse_hidden(data: Any, where: str) -> None:
    """Raise InputError for a sparse matrix, which has no length, and for masked values, which would be used."""
    if hasattr(data, "toarray"):
        raise InputError(f"{where} is {type(data).__name__}, which is sparse: give an array, as by toarray()")
    if isinstance(data, np.ma.MaskedArray) and np.ma.is_masked(data):
        raise InputError(f"{where} has masked values: fill them, or remove their samples")


def without_torch(data: Any, where: str) -> Any:
    """A tensor as an array, anything else as it is; InputError for a tensor that is sparse or has no values."""
    if not hasattr(data, "detach"):
        return data
    try:
        dense = data.detach().cpu()
        if str(dense.dtype) == "torch.bfloat16":  # numpy has no such type, and float32 has all its values
            dense = dense.float()
        return dense.numpy()
    except (TypeError, RuntimeError) as error:  # NotImplementedError is a RuntimeError
        kind = f"{data.dtype}, {data.layout}, on {data.device}"
        raise InputError(
            f"{where} is a tensor ({kind}): must be a dense tensor of numbers, not on the device meta"
        ) from error


def as_images(images: NDArray[Any], where: str, top: int | None = None) -> Images:
    """The array (N, H, W), (N, H, W, K) or (N, K, H, W) as uint8 (N, H, W, K); `top` as in `as_image`; else InputError.

    Its values are uint8, other integers from 0 to 255, or floats from 0 to 1 or from 0 to 255.
    """
    shape = images.shape
    if images.ndim not in (3, 4):
        raise InputError(
            f"{where} has shape {shape}: must be images (N, H, W), (N, H, W, K) or (N, K, H, W), or vectors (N, D)"
        )
    if images.ndim == 3:
        images = images[..., np.newaxis]
    elif shape[1] in (1, 3) and shape[3] in (1, 3):
        raise InputError(f"{where} has shape {shape}: ambiguous channel order; H must be more than 3")
    elif shape[1] in (1, 3):
        images = images.transpose(0, 2, 3, 1)
    return np.ascontiguousarray(_as_uint8(images, where, top))


def _as_uint8(values: NDArray[Any], where: str, top: int | None) -> NDArray[np.uint8]:
    """Levels from 0 to 255, from integers in that range, or from floats up to `top`; without it, they decide."""
    if values.dtype == np.uint8 or values.size == 0:
        return values.astype(np.uint8, copy=False)
    if values.dtype.kind not in "iuf":
        raise InputError(f"{where} has type {values.dtype}: must be uint8, or floats from 0 to 1 or from 0 to 255")
    if values.dtype.kind == "f":
        return np.rint(values * (255 / (top or float_top([values], where)))).astype(np.uint8)
    low, high = values.min(), values.max()
    if not (low >= 0 and high <= 255):
        raise InputError(f"{where} has {values.dtype} values from {low} to {high}: must be from 0 to 255")
    return values.astype(np.uint8)


def float_top(arrays: Iterable[NDArray[Any]], where: str) -> int:
    """1 or 255: the level of white that all float images together have. Raises InputError if it is neither, or unclear.

    One image alone may be dark, so all of a data set decide together.
    """
    ends = [(array.min(), array.max()) for array in arrays if array.size]
    lows, highs = (np.array(end, dtype=np.float64) for end in zip(*ends, strict=True)) if ends else (np.zeros(1),) * 2
    low, high = lows.min(), highs.max()  # NaN if any is
    if low >= 0 and high <= 1:
        return 1
    if low >= 0 and _DARKEST < high <= 255:
        return 255
    words = f"{where} has float values from {low:g} to {high:g}: must be from 0 to 1, or from 0 to 255"
    if low < 0:
        words += "; if they are normalised, give the images before that"
    elif 1 < high <= _DARKEST:
        words += "; which of them is unclear: scale them, or convert them to uint8"
    raise InputError(words)


def as_image(item: Any, where: str, top: int | None = None) -> ImageLike:
    """One image of a list or column: a path, a file's content, or a Pillow image, also of an array; else InputError.

    `top` is the level of white of float images, 1 or 255; without it, the image decides.
    """
    from PIL import Image

    if isinstance(item, dict):  # an image that a data set has not decoded
        item = item.get("path") if item.get("bytes") is None else item["bytes"]
    if isinstance(item, str | Path):
        return Path(item)
    if isinstance(item, bytes | Image.Image):
        return item
    if isinstance(item, np.ndarray) and item.ndim in (2, 3):
        (image,) = as_images(item[np.newaxis], where, top)
        if image.shape[2] not in (1, 3, 4) or 0 in image.shape:
            raise InputError(f"{where} has shape {item.shape}: must have pixels with 1 or 3 channels")
        return Image.fromarray(image[..., 0] if image.shape[2] == 1 else image)
    raise InputError(f"{where} is {type(item).__name__}: must be a path, bytes, a Pillow image or an array")
