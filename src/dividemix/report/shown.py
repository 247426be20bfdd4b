"""What a card of the page shows of a sample. A kind is one function here and one entry of SHOWN in static/shown.js."""

import base64
from collections.abc import Sequence
from typing import Any

Shown = dict[str, Any]
_TEXT_LENGTH = 4000  # characters of a text on the page
_SIGNATURES = ((b"\xff\xd8", "image/jpeg"), (b"\x89PNG", "image/png"), (b"RIFF", "image/webp"))


def image(picture: bytes, original: str | None = None) -> Shown | None:
    """A picture inside the page, from a JPEG, PNG or WebP file, with a link to the original; None for no bytes."""
    if not picture:
        return None
    kind = next((kind for signature, kind in _SIGNATURES if picture.startswith(signature)), None)
    assert kind, "thumbnails are JPEG, PNG or WebP"
    small = f"data:{kind};base64,{base64.b64encode(picture).decode('ascii')}"
    return {"kind": "image", "small": small, "original": original}


def image_at(small: str, large: str, original: str | None) -> Shown:
    """A picture at addresses that a server answers."""
    return {"kind": "image", "small": small, "large": large, "original": original}


def text(words: str, marks: Sequence[tuple[int, int]] = ()) -> Shown:
    """A text, cut if it is very long; `marks` are the places of words that matter, in their order."""
    kept = [list(span) for span in marks if span[1] <= _TEXT_LENGTH]
    return {"kind": "text", "text": words[:_TEXT_LENGTH]} | ({"marks": kept} if kept else {})


def row(cells: Sequence[tuple[str, str, bool]]) -> Shown:
    """The columns of a table's row: names, values, and whether each is unusual."""
    return {"kind": "row", "cells": [list(cell) for cell in cells]}
