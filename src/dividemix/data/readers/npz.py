"""Read an .npz file with named arrays."""

import math
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from dividemix.data.classes import LabelType, check_text, class_labels, natural_sorted, numbered
from dividemix.data.mapped import DAMAGE, map_member
from dividemix.data.packed_samples import is_packed, unpacked
from dividemix.data.source import Labels, Source, as_labels, check_samples
from dividemix.data.votes import VOTE_ARRAYS, Votes
from dividemix.errors import InputError

_REQUIRED = ("x_train", "y_train")
_OPTIONAL = ("x_test", "y_test", "y_true", "classes", "label_type", "text_column", "feature_names", "paths", "rows")
_KNOWN = (*_REQUIRED, *_OPTIONAL, *VOTE_ARRAYS)  # the last are in the data.npz of a run alone
_LABELS = {"y_train": "x_train", "y_test": "x_test", "y_true": "x_train"}  # labels -> their samples
# Other names that an array may have.
_ALSO = {"features": "x_train", "labels": "y_train", "true_labels": "y_true"}
_ALSO |= {"test_features": "x_test", "test_labels": "y_test"}

_NO_NPZ = "{}: not an .npz file, or cut short: write it with numpy.savez_compressed"

_LARGE = 1 << 28  # bytes from which vectors are mapped instead of read, unless they are compressed
# What zipfile and numpy raise for a damaged, encrypted or hostile file.
_DAMAGE = (*DAMAGE, zipfile.BadZipFile, zlib.error, LookupError, RuntimeError)


def read_npz(path: Path, *, memory_gb: float = math.inf) -> Source:
    """The arrays of an .npz file as a source.

    `x_train` is images, uint8 (N, H, W) or (N, H, W, K), or vectors, numbers (N, D); `y_train` is (N,). Optional are
    `x_test` with `y_test`, `y_true` (true training labels, for scoring only), `classes` (names), `paths` (text, one for
    each training sample), `rows` (the positions of the training samples in the data that they come from),
    `label_type` (text, integer or boolean: what predictions are), `text_column` (the column of a table that had the
    texts) and `feature_names` (D,) (the columns of a table that were the vectors).
    Other names are `features`, `labels`, `true_labels`, `test_features` and `test_labels`. Labels are integers
    >= 0, or text in all arrays. Without `classes`, the classes are "0", "1", ... up to the highest label or, for text,
    the texts in `y_train` in natural order. Large vectors are mapped from the file, not read. Raises InputError, naming
    the file and the array, if something is wrong, or if what is read takes more than `memory_gb`.
    """
    arrays, called = _load(path, memory_gb)
    given = {
        name: _samples(array, called[name], path) for name, array in arrays.items() if name in ("x_train", "x_test")
    }
    images = {name: array[..., np.newaxis] if array.ndim == 3 else array for name, array in given.items()}
    check_samples(images["x_train"], f"{path}: {called['x_train']}")
    if "x_test" in images:
        check_samples(images["x_test"], f"{path}: {called['x_test']}", like=images["x_train"])
    num_train = len(images["x_train"])
    names = _class_names(arrays["classes"], path) if "classes" in arrays else None
    is_text = arrays["y_train"].dtype.kind == "U"
    if is_text:
        names = names or tuple(natural_sorted(set(arrays["y_train"].ravel().tolist())))
    labels: dict[str, Labels] = {}
    for name, of in _LABELS.items():
        if name in arrays:
            values, where = arrays[name], f"{path}: {called[name]}"
            if is_text and values.dtype.kind != "U":
                text = called["y_train"]
                raise InputError(f"{where} has type {values.dtype}, but {text} has text: use text in both")
            if is_text and names is not None:
                values = numbered(values.ravel().tolist(), names, where).reshape(values.shape)
            labels[name] = as_labels(values, where, len(images[of]), len(names) if names else None)
    classes = names or _numbered_classes({called[name]: one for name, one in labels.items()}, num_train, path)
    return Source(
        name=path.stem,
        classes=classes,
        has_names=names is not None,
        label_type=_label_type(arrays["label_type"], classes, path) if "label_type" in arrays else "text",
        train_samples=images["x_train"],
        train_labels=labels["y_train"],
        text_column=str(arrays["text_column"]) if "text_column" in arrays else None,
        feature_names=_feature_names(arrays["feature_names"], images["x_train"], path)
        if "feature_names" in arrays
        else None,
        test_samples=images.get("x_test"),
        test_labels=labels.get("y_test"),
        true_labels=labels.get("y_true"),
        paths=_paths(arrays["paths"], num_train, path) if "paths" in arrays else None,
        votes=_votes(arrays, num_train, path),
        rows=_rows(arrays["rows"], num_train, path) if "rows" in arrays else np.arange(num_train),
    )


def _samples(array: NDArray[Any], name: str, path: Path) -> NDArray[Any]:
    """Samples as they are, or texts or rows in the data.npz of a run."""
    if not is_packed(array):
        return array
    try:
        return unpacked(array)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{path}: {name} is damaged ({str(error)[:100]}): make the file again") from error


def _paths(names: NDArray[Any], num_train: int, path: Path) -> tuple[str, ...]:
    if names.shape != (num_train,) or names.dtype.kind != "U":
        raise InputError(f"{path}: paths is {names.dtype} of shape {names.shape}: must be one text for each sample")
    return tuple(names.tolist())


def _votes(arrays: dict[str, NDArray[Any]], num_train: int, path: Path) -> Votes | None:
    """The votes behind the labels, if several annotators gave them."""
    if not any(name in arrays for name in VOTE_ARRAYS):
        return None
    try:
        return Votes.of_arrays(arrays, num_train)
    except ValueError as error:
        raise InputError(f"{path}: the votes do not fit: {error}; make the file again") from error


def _rows(rows: NDArray[Any], num_train: int, path: Path) -> NDArray[np.int64]:
    """The positions of the training samples in the data that they come from."""
    if rows.shape != (num_train,) or rows.dtype.kind not in "iu":
        raise InputError(f"{path}: rows is {rows.dtype} of shape {rows.shape}: must be one integer for each sample")
    if len(np.unique(rows)) < num_train or rows.min() < 0 or rows.max() >= 2**31:
        raise InputError(
            f"{path}: rows has a number twice, or one out of range: must be different integers from 0 to {2**31 - 1}"
        )
    return rows.astype(np.int64)


def known_names(given: Iterable[str]) -> dict[str, str]:
    """Usual name -> name in the file, for arrays of an .npz file, which may have other names."""
    return {_ALSO.get(name, name): name for name in given}


def read_array(path: Path, names: Sequence[str]) -> NDArray[Any]:
    """The array of an .npz file under the first of these names that it has. Raises InputError if it has none."""
    with _opened(path) as archive:
        name = next((name for name in names if name in archive.files), None)
        if name is None:
            raise InputError(f"{path}: has no array called {', '.join(names)}: rename the array of vectors")
        array: NDArray[Any] = archive[name]
        return array


def _load(path: Path, memory_gb: float) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """Usual name -> array, the required ones and no unknown ones; and usual name -> name in the file."""
    with _opened(path) as archive:
        names = known_names(archive.files)
        if len(names) < len(archive.files):
            raise InputError(f"{path}: has an array under two names: keep one of {', '.join(archive.files)}")
        _check_names(names, path)
        large = {one.filename.removesuffix(".npy"): one for one in archive.zip.infolist() if one.file_size >= _LARGE}
        mapped = {name: map_member(path, large[given]) for name, given in names.items() if given in large}
        arrays = {name: array for name, array in mapped.items() if array is not None and array.ndim == 2}
        to_read = {name: given for name, given in names.items() if name not in arrays}
        in_file = {f"{names[name]}.npy" for name in arrays}
        _check_size((one for one in archive.zip.infolist() if one.filename not in in_file), memory_gb, path)
        arrays |= {name: archive[given] for name, given in to_read.items()}
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):
            raise InputError(f"{path}: {names[name]} is not an array: write the file with numpy.savez_compressed")
        if array.dtype.kind == "U":
            check_text(array, f"{path}: {names[name]}")
    return arrays, names


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """The archive, without pickles, so no code in it can run. What is wrong with it inside becomes an InputError."""
    if not path.exists():
        raise InputError(f"{path}: no such file")
    if not path.is_file():
        raise InputError(_NO_NPZ.format(path))
    try:
        with path.open("rb") as file, _unpacked(file, path) as archive:
            yield archive
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except _DAMAGE as error:
        if "allow_pickle" in str(error):
            raise InputError(f"{path}: an array has Python objects: save numbers, and names as text") from error
        raise InputError(f"{path}: damaged: {' '.join(str(error).split()) or type(error).__name__}") from error


def _unpacked(file: BinaryIO, path: Path) -> "np.lib.npyio.NpzFile":
    """The arrays of an open file, none of them read yet."""
    if not zipfile.is_zipfile(file):
        raise InputError(_NO_NPZ.format(path))
    file.seek(0)
    archive: np.lib.npyio.NpzFile = np.load(file, allow_pickle=False)
    return archive


def _check_size(members: Iterable[zipfile.ZipInfo], memory_gb: float, path: Path) -> None:
    """Raise InputError if the arrays take more than `memory_gb`, before any is unpacked: no more is read than this."""
    size = sum(member.file_size for member in members) / 1e9
    if size > memory_gb:
        raise InputError(
            f"{path}: its arrays take {size:.1f} GB, memory_gb is {memory_gb:g}: raise memory_gb, or use less data"
        )


def _check_names(names: dict[str, str], path: Path) -> None:
    """Raise InputError unless the required arrays exist, test arrays come in pairs, and no array is unknown."""
    pairs = "features and labels (vectors), or x_train and y_train"
    if missing := [name for name in _REQUIRED if name not in names]:
        found = ", ".join(repr(name[:50]) for name in list(names.values())[:20]) or "none"
        absent = (
            "labels" if missing == ["y_train"] else "samples" if missing == ["x_train"] else "samples and no labels"
        )
        raise InputError(f"{path}: has no {absent}, its arrays are {found}: name them {pairs}")
    if unknown := [name for name in names if name not in _KNOWN]:
        allowed = f"required are {pairs}; optional are {', '.join(_OPTIONAL)}"
        raise InputError(f"{path}: unknown array {', '.join(map(repr, unknown))}: {allowed}")
    if ("x_test" in names) != ("y_test" in names):
        present, absent = ("x_test", "y_test") if "x_test" in names else ("y_test", "x_test")
        raise InputError(f"{path}: {present} without {absent}: give both or none")


def _class_names(names: NDArray[Any], path: Path) -> tuple[str, ...]:
    if names.ndim != 1 or names.dtype.kind != "U":
        raise InputError(f"{path}: classes is {names.dtype} of shape {names.shape}: must be a list of names (text)")
    if len(names) < 2 or len(set(names.tolist())) < len(names):
        raise InputError(f"{path}: classes is {names.tolist()}: must be at least two different names")
    return tuple(names.tolist())


def _feature_names(names: NDArray[Any], samples: NDArray[Any], path: Path) -> tuple[str, ...]:
    """The names of the numbers of a vector. Raises InputError unless there is a different one for each."""
    found = tuple(names.ravel().tolist())
    if names.dtype.kind != "U" or samples.ndim != 2 or len(set(found)) != samples.shape[1] or names.ndim != 1:
        raise InputError(f"{path}: feature_names must be different texts, one for each number of a vector")
    return found


def _label_type(kind: NDArray[Any], classes: tuple[str, ...], path: Path) -> LabelType:
    """The type of the labels that predictions have, too, as the data.npz of a run stores it."""
    try:
        class_labels(classes, str(kind))
    except ValueError as error:
        raise InputError(f"{path}: {error}: make the file again") from error
    return str(kind)  # type: ignore[return-value]


def _numbered_classes(labels: dict[str, Labels], num_train: int, path: Path) -> tuple[str, ...]:
    """The classes "0", "1", ... up to the highest label of any array."""
    name = max(labels, key=lambda name: int(labels[name].max()))
    high = int(labels[name].max())
    if high >= num_train:  # a stray label, such as 255 for "none", must not create hundreds of empty classes
        raise InputError(
            f"{path}: {name} has label {high}, but {num_train} training samples are too few for {high + 1} classes: "
            "number the classes from 0, or name all of them in an array `classes`"
        )
    if high < 1:
        raise InputError(f"{path}: all labels are 0, at least two classes are needed")
    return tuple(str(label) for label in range(high + 1))
