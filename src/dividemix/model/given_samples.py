"""What a Python program gives a model to predict: arrays, lists, tables, or one sample, brought to one form per kind.

Shapes: N samples, H x W pixels, D numbers of a vector.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dividemix.data.readers.frame import image_column, is_frame, numbers_like
from dividemix.data.readers.frame_columns import columns_of
from dividemix.data.readers.pixels import array_or_list, as_vectors
from dividemix.data.texts import as_texts
from dividemix.errors import InputError
from dividemix.model.encoded_input import Input
from dividemix.model.inputs import VectorInput
from dividemix.model.row_input import RowInput
from dividemix.model.text_input import TextInput


def samples_for(takes: Input, samples: Any) -> NDArray[Any] | list[Any]:
    """Raw samples (N, ...) for the model's input, or a list of images of any size. Else InputError."""
    if isinstance(takes, RowInput):
        return takes.checked(samples)
    if isinstance(takes, TextInput):
        return takes.checked(_texts(samples, takes.column))
    if is_frame(samples):
        names = takes.names if isinstance(takes, VectorInput) else None
        samples = _images(samples) if takes.kind == "images" else numbers_like(samples, names, takes.kind)
    if _is_one(samples, takes):
        samples = [samples]
    elif hasattr(samples, "to_list"):  # a column of pandas or polars
        samples = samples.to_list()
    items = array_or_list(samples, takes.kind)
    if takes.kind == "vectors" and not isinstance(items, np.ndarray):
        items = as_vectors(items, takes.kind) if items else np.empty((0, *takes.shape))
    return takes.checked(items) if isinstance(items, np.ndarray) else items


def _is_one(samples: Any, takes: Input) -> bool:
    """Whether this is one image or vector: a path, a file's content, a Pillow image, an array of the model's size."""
    if isinstance(samples, str | Path | bytes) or type(samples).__module__.startswith("PIL."):
        return takes.kind == "images"
    shape, own = tuple(getattr(samples, "shape", ())), takes.shape
    return shape == own or (own[2:] == (1,) and shape == own[:2])


def _texts(samples: Any, column: str | None) -> NDArray[Any]:
    """Texts (N,): of a list, of a column, of the column of a table that the model was trained on, or one alone."""
    if isinstance(samples, str):
        return as_texts([samples])
    is_rows = isinstance(samples, list | tuple) and any(isinstance(row, Mapping) for row in samples)
    if is_frame(samples) or isinstance(samples, Mapping) or hasattr(samples, "column_names") or is_rows:
        cells = columns_of(samples, "texts").cells
        if column is None or column not in cells:
            missing = "" if column is None else f" without {column!r}, the column that the model was trained on"
            found = ", ".join(repr(name[:50]) for name in list(cells)[:20])
            raise InputError(f"texts are a table{missing}, with the columns {found}: give a list of its texts")
        return as_texts(cells[column])
    if not isinstance(samples, Iterable) or isinstance(samples, bytes):
        raise InputError(f"texts is {type(samples).__name__}: must be a text, a list of texts, or a table with them")
    return as_texts(samples)


def _images(frame: Any) -> list[Any]:
    """The cells of a table's column of images, or of their paths."""
    column = image_column(frame, None)
    if column is None:
        found = ", ".join(repr(str(name)[:50]) for name in list(frame.columns)[:20])
        raise InputError(f"images are a table without a column 'path', 'image' or 'img': it has {found}; give a list")
    return list(frame[column].to_list())
