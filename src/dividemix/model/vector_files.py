"""The vectors to predict: .npy, .npz, .parquet and .arrow files, without labels."""

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from dividemix.data.mapped import map_npy
from dividemix.data.readers.list_column import ARROW, column_of
from dividemix.data.readers.npz import read_array
from dividemix.errors import InputError

VECTOR_FILES = (".npy", ".npz", ".parquet", *ARROW)
_NAMES = ("features", "x_test", "x_train", "x")  # of the array in an .npz file, the first that it has


def read_vectors(path: Path, features_column: str | None = None) -> NDArray[Any]:
    """The vectors (N, D) of a file: an .npy file, the array `features` of an .npz file, or a column of lists.

    An .npz file may call it x_test, x_train or x instead. Raises InputError if there are none.
    """
    suffix = path.suffix.lower()
    takes = f"this model takes vectors: give {', '.join(VECTOR_FILES[:-1])} or {VECTOR_FILES[-1]} files"
    if path.is_dir():
        raise InputError(f"{path} is a folder: {takes}")
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    if suffix == ".npy":
        return map_npy(path)
    if suffix == ".npz":
        return read_array(path, _NAMES)
    if suffix in (".parquet", *ARROW):
        return column_of(path, features_column)
    raise InputError(f"{path}: {takes}")
