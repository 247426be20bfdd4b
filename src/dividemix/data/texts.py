"""Texts (N,) as samples: what is allowed, and what identifies them."""

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dividemix.errors import InputError


def as_texts(texts: Iterable[str]) -> NDArray[Any]:
    """The texts as an array (N,) of objects: numpy's own arrays of text pad all to the longest."""
    listed = list(texts)
    array = np.empty(len(listed), dtype=object)
    array[:] = listed
    return array


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
