"""Data of one's own: an .npz file with named arrays."""

import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dividemix.data.classes import natural_sorted, numbered
from dividemix.data.source import Labels, Source, as_labels, check_images
from dividemix.errors import InputError

_REQUIRED = ("x_train", "y_train")
_OPTIONAL = ("x_test", "y_test", "y_true", "classes", "paths", "rows")

# All that zipfile and numpy raise on a damaged, encrypted or hostile file.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    ValueError,
    TypeError,
    LookupError,
    RuntimeError,
    SyntaxError,
    MemoryError,
)


def read_npz(path: Path) -> Source:
    """The arrays of an .npz file as a source.

    `x_train` is uint8 (N, H, W) or (N, H, W, K), `y_train` (N,); optional are `x_test` with `y_test`, `y_true` (true
    training labels, for scoring only), `classes` (names), `paths` (text, one for each training image) and `rows` (the
    training images' places in the data they were taken from). Labels are whole numbers from 0, or text in all arrays.
    Without `classes` there are as many as the highest number says, named "0", "1", ..., or those that the texts of
    `y_train` name, in natural order.

    Raises:
        InputError: naming the file and the array.
    """
    arrays = _load(path)
    images = {name: _with_channels(arrays[name]) for name in ("x_train", "x_test") if name in arrays}
    check_images(images["x_train"], f"{path}: x_train")
    if "x_test" in images:
        check_images(images["x_test"], f"{path}: x_test", like=images["x_train"])
    num_train = len(images["x_train"])
    names = _class_names(arrays, path) if "classes" in arrays else None
    if arrays["y_train"].dtype.kind == "U":
        names = names or tuple(natural_sorted(set(arrays["y_train"].ravel().tolist())))
        arrays |= _from_text(arrays, names, path)
    labels: dict[str, Labels] = {
        name: as_labels(
            arrays[name],
            f"{path}: {name}",
            len(images["x_test"]) if name == "y_test" else num_train,
            num_classes=len(names) if names else None,
        )
        for name in ("y_train", "y_test", "y_true")
        if name in arrays
    }
    return Source(
        name=path.stem,
        classes=names or _numbered_classes(labels, num_train, path),
        train_images=images["x_train"],
        train_labels=labels["y_train"],
        test_images=images.get("x_test"),
        test_labels=labels.get("y_test"),
        true_labels=labels.get("y_true"),
        paths=_paths(arrays, num_train, path),
        rows=_rows(arrays["rows"], num_train, path) if "rows" in arrays else np.arange(num_train),
    )


def _paths(arrays: dict[str, NDArray[Any]], num_train: int, path: Path) -> tuple[str, ...] | None:
    """The names of the training images, if the file has them."""
    if "paths" not in arrays:
        return None
    names = arrays["paths"]
    if names.shape != (num_train,) or names.dtype.kind != "U":
        raise InputError(f"{path}: paths is {names.dtype} of shape {names.shape}: one text for each image is needed")
    return tuple(names.tolist())


def _rows(rows: NDArray[Any], num_train: int, path: Path) -> NDArray[np.int64]:
    """Where the training images stood in the data they were taken from."""
    if rows.shape != (num_train,) or rows.dtype.kind not in "iu":
        raise InputError(
            f"{path}: rows is {rows.dtype} of shape {rows.shape}: one whole number for each image is needed"
        )
    if len(np.unique(rows)) < num_train or rows.min() < 0 or rows.max() >= 2**31:
        raise InputError(
            f"{path}: rows holds a number twice, or one that is no place in data: each counts from 0, once"
        )
    return rows.astype(np.int64)


def _load(path: Path) -> dict[str, NDArray[Any]]:
    """Name -> array: the required ones and nothing unknown."""
    if not path.exists():
        raise InputError(f"{path}: no such file")
    if not path.is_file() or not zipfile.is_zipfile(path):
        raise InputError(f"{path}: not an .npz file, or cut short: write it with numpy.savez_compressed")
    try:
        # Without pickles nothing in the file can run.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            _check_names(archive.files, path)
            arrays = {name: archive[name] for name in archive.files}
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except _DAMAGE as error:
        if "allow_pickle" in str(error):
            raise InputError(f"{path}: an array holds Python objects: save numbers, and names as text") from error
        raise InputError(f"{path}: damaged: {' '.join(str(error).split()) or type(error).__name__}") from error
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):
            raise InputError(f"{path}: {name} is not an array: write the file with numpy.savez_compressed")
    return arrays


def _check_names(names: list[str], path: Path) -> None:
    """Nothing, if the required arrays are there, test arrays in pairs, and no array would go unread."""
    allowed = f"needed are {', '.join(_REQUIRED)}; allowed as well {', '.join(_OPTIONAL)}"
    if missing := [name for name in _REQUIRED if name not in names]:
        raise InputError(f"{path}: {', '.join(missing)} missing: {allowed}")
    if unknown := [name for name in names if name not in _REQUIRED + _OPTIONAL]:
        raise InputError(f"{path}: unknown array {', '.join(map(repr, unknown))}: {allowed}")
    if ("x_test" in names) != ("y_test" in names):
        there, absent = ("x_test", "y_test") if "x_test" in names else ("y_test", "x_test")
        raise InputError(f"{path}: {there} without {absent}: give both or none")


def _with_channels(images: NDArray[Any]) -> NDArray[Any]:
    """(N, H, W) as (N, H, W, 1); anything else as it is."""
    return images[..., np.newaxis] if images.ndim == 3 else images


def _class_names(arrays: dict[str, NDArray[Any]], path: Path) -> tuple[str, ...]:
    """The names in `classes`."""
    names = arrays["classes"]
    if names.ndim != 1 or names.dtype.kind != "U":
        raise InputError(f"{path}: classes is {names.dtype} of shape {names.shape}: a list of names (text) is needed")
    if len(names) < 2 or len(set(names.tolist())) < len(names):
        raise InputError(f"{path}: classes holds {names.tolist()}: at least two names are needed, each once")
    return tuple(names.tolist())


def _from_text(arrays: dict[str, NDArray[Any]], names: tuple[str, ...], path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of labels, which are text, as numbers of the names; a shape that is wrong stays so."""
    found: dict[str, NDArray[Any]] = {}
    for name in ("y_train", "y_test", "y_true"):
        if name in arrays:
            labels = arrays[name]
            if labels.dtype.kind != "U":
                raise InputError(f"{path}: {name} holds {labels.dtype}, but y_train holds text: give text in both")
            found[name] = numbered(labels.ravel().tolist(), names, f"{path}: {name}").reshape(labels.shape)
    return found


def _numbered_classes(labels: dict[str, Labels], num_train: int, path: Path) -> tuple[str, ...]:
    """The classes "0", "1", ... up to the highest label of any array."""
    name = max(labels, key=lambda name: int(labels[name].max()))
    high = int(labels[name].max())
    if high >= num_train:  # a stray label, such as 255 for "none", must not make hundreds of empty classes
        raise InputError(
            f"{path}: {name} holds label {high}, but {num_train} training images cannot fill {high + 1} classes: "
            "number the classes from 0, or name all of them in an array `classes`"
        )
    if high < 1:
        raise InputError(f"{path}: all labels are 0, at least two classes are needed")
    return tuple(str(label) for label in range(high + 1))
