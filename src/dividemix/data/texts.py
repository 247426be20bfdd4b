"""Texts (N,) as samples: what is allowed, and what identifies them."""

import hashlib
import os
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dividemix.errors import InputError

_IMAGES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")


def as_texts(texts: Iterable[str]) -> NDArray[Any]:
    """The texts as an array (N,) of objects: numpy's own arrays of text pad all to the longest."""
    listed = list(texts)
    array = np.empty(len(listed), dtype=object)
    for number, text in enumerate(listed):  # one by one: numpy would take lists for rows
        array[number] = text
    return array


def are_texts(samples: Any, *, are_paths: bool = False) -> bool:
    """Whether samples are texts: strings of which none ends like an image file, and not all name files.

    A single text may be the name of a file in the working directory by chance. `are_paths` says that strings in a list
    are paths, whatever they look like.
    """
    is_list = isinstance(samples, list | tuple) or (isinstance(samples, np.ndarray) and samples.ndim == 1)
    if not is_list or not len(samples) or not all(isinstance(sample, str) for sample in samples):
        return False
    if isinstance(samples, np.ndarray) and samples.dtype == object:
        return True
    if are_paths or any(sample.lower().endswith(_IMAGES) for sample in samples):
        return False
    return not all(map(_is_file, samples))


def _is_file(name: str) -> bool:
    return len(name) < 4096 and "\0" not in name and os.path.lexists(name)


def check_texts(texts: NDArray[Any], where: str) -> None:
    """Raise InputError, starting with `where`, unless these are at least two texts, none of them blank."""
    for i, text in enumerate(texts.tolist()):
        if not isinstance(text, str):
            raise InputError(f"{where} has {type(text).__name__} at position {i}: must be text")
        if not text.strip():
            raise InputError(f"{where} has a blank text at position {i}: remove it")
    if len(texts) < 1:
        raise InputError(f"{where} has no text")


def texts_fingerprint(texts: NDArray[Any]) -> bytes:
    """32 bytes that identify texts (N,)."""
    whole = hashlib.blake2b(repr(texts.shape).encode(), digest_size=32)
    for text in texts.tolist():
        raw = text.encode("utf-8", "surrogatepass")
        whole.update(len(raw).to_bytes(8, "little") + raw)
    return whole.digest()
