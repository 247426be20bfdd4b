"""Texts and rows as one array of bytes, so that the copy of a program's data is plain arrays: JSON in UTF-8."""

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dividemix.data.table_rows import as_rows, is_numeric, is_rows
from dividemix.data.texts import as_texts

_START = b'{"kind": '


def packed(samples: Any) -> Any:
    """Texts or rows (N,) as bytes; other samples, and None, as they are."""
    if not isinstance(samples, np.ndarray) or not (is_rows(samples) or samples.dtype == object):
        return samples
    content: dict[str, Any] = {"kind": "texts"}
    if is_rows(samples):
        names = samples.dtype.names or ()
        numeric = [name for name in names if is_numeric(samples, name)]
        columns = {name: [None if value != value else value for value in samples[name].tolist()] for name in names}
        content = {"kind": "rows", "numeric": numeric, "columns": columns}
    else:
        content["texts"] = samples.tolist()
    return np.frombuffer(json.dumps(content).encode(), dtype=np.uint8)


def is_packed(array: NDArray[Any]) -> bool:
    """Whether an array is what `packed` makes."""
    return array.ndim == 1 and array.dtype == np.uint8 and array[: len(_START)].tobytes() == _START


def unpacked(array: NDArray[Any]) -> NDArray[Any]:
    """The texts or rows (N,) that were packed. Raises ValueError, KeyError or TypeError if they are damaged."""
    content = json.loads(array.tobytes())
    if content["kind"] == "texts":
        if not all(isinstance(text, str) for text in content["texts"]):
            raise ValueError("a text is not text")
        return as_texts(content["texts"])
    columns, numeric = content["columns"], set(content["numeric"])
    if not columns or len({len(values) for values in columns.values()}) != 1:
        raise ValueError("columns have different lengths")
    found: dict[str, Any] = {}
    for name, values in columns.items():
        if name not in numeric and not all(value is None or isinstance(value, str) for value in values):
            raise ValueError(f"column {name!r} has a value that is not text")
        found[name] = np.array(values, dtype=np.float64) if name in numeric else values
    return as_rows(found)
