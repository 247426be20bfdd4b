"""Samples of a Python program, with their labels if they have some: arrays, lists, pairs and data sets."""

from collections.abc import Iterator, Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dividemix.data.image_files import MadeWhenRead
from dividemix.data.images import ImageLike, UnreadableImage
from dividemix.data.readers.pixels import (
    array_or_list,
    as_image,
    as_images,
    as_vectors,
    float_top,
    is_vector,
    refuse_hidden,
    without_torch,
)
from dividemix.data.texts import are_texts, as_texts
from dividemix.errors import InputError, is_refusal, refused

_IMAGE_COLUMNS = ("image", "img", "path")


class Samples(NamedTuple):
    """Images or vectors as one array, or a list of images; labels and names of classes if the data has them."""

    samples: NDArray[Any] | Sequence[ImageLike]
    labels: Any = None
    classes: Sequence[str] | None = None


def samples_of(
    data: Any,
    where: str,
    *,
    image_column: str | None,
    label_column: str,
    features_column: str | None,
    are_paths: bool = False,
) -> Samples:
    """The samples of an array, a tensor, a list, a list of pairs (sample, label), or a data set. Else InputError.

    `are_paths` says that strings in lists are paths of images.
    """
    if all(hasattr(data, name) for name in ("features", "column_names", "__getitem__", "__len__")):
        return _of_columns(data, where, image_column, label_column, features_column)
    refuse_hidden(data, where)
    if hasattr(data, "to_list"):  # a column of pandas or polars
        data = data.to_list()
    if isinstance(data, list | tuple) and data and all(map(_is_pair, data)):
        images, labels = zip(*data, strict=True)
        return Samples(_of_items(list(images), where, are_paths=are_paths), list(labels))
    is_data_set = hasattr(data, "__getitem__") and not isinstance(data, list | tuple | dict | str | bytes | np.ndarray)
    if is_data_set and not hasattr(data, "detach"):
        return _of_data_set(data, where)
    return Samples(_of_items(data, where, are_paths=are_paths))


def _of_items(data: Any, where: str, *, are_paths: bool) -> NDArray[Any] | Sequence[ImageLike]:
    """An array, a tensor or a list of samples."""
    if are_texts(data, are_paths=are_paths):
        return as_texts(data)
    items = array_or_list(data, where)
    if isinstance(items, np.ndarray):
        return items if items.ndim == 2 else as_images(items, where)
    if items and all(map(is_vector, items)):
        return as_vectors(items, where)
    arrays = [item for item in items if isinstance(item, np.ndarray)]
    if arrays and len(arrays) == len(items) and len({item.shape for item in arrays}) == 1:
        return as_images(np.stack(arrays), where)
    floats = [item for item in arrays if item.dtype.kind == "f"]
    top = float_top(floats, where) if floats else None
    return [as_image(item, f"{where}[{number}]", top) for number, item in enumerate(items)]


def _is_pair(item: Any) -> bool:
    """Whether an item of a list is a sample with its label; a list of two numbers is a vector."""
    return isinstance(item, list | tuple) and len(item) == 2 and not isinstance(item[0], Real)


def _of_columns(
    data: Any, where: str, image_column: str | None, label_column: str, features_column: str | None
) -> Samples:
    """A data set with the interface of `datasets.Dataset`."""
    candidates = _IMAGE_COLUMNS if image_column is None else (image_column,)
    if features_column is not None:
        candidates = (features_column,)
    column = next((name for name in candidates if name in data.column_names), None)
    for missing in [name for name in (column, label_column) if name not in data.column_names]:
        found = ", ".join(map(repr, data.column_names))
        wanted = " or ".join(map(repr, candidates)) if missing is None else repr(missing)
        raise InputError(f"{where} has no column {wanted}: it has {found}")

    def image(row: int) -> ImageLike:
        try:
            item = data[row][column]
        except Exception as error:  # the data set decodes images itself, and may raise anything
            if is_refusal(error):
                raise refused(f"{where}[{row}]", error) from error
            raise UnreadableImage(f"cannot be fetched: {' '.join(str(error).split())[:150]}") from error
        return as_image(item, f"{where}[{row}][{column!r}]")

    names = getattr((data.features or {}).get(label_column), "names", None)
    if features_column is not None:
        return Samples(
            as_vectors(data[features_column], f"{where}[{features_column!r}]"), list(data[label_column]), names
        )
    return Samples(MadeWhenRead(len(data), image), list(data[label_column]), names)


def _of_data_set(data: Any, where: str) -> Samples:
    """A data set that gives pairs (sample, label) by number, such as those of torch.

    Its items are fetched once for their labels, and again when the images are read, so that they need not all be in
    memory. Random transforms are none of its business: the training has its own.
    """
    if not hasattr(data, "__len__"):
        raise InputError(f"{where} is {type(data).__name__}, which has no length: give a list of its items")
    labels, vectors, floats = [], [], []
    for row, (sample, label) in enumerate(_pairs(data, where)):
        labels.append(label)
        if is_vector(sample):
            vectors.append(sample)
        elif isinstance(sample, np.ndarray) and sample.dtype.kind == "f":
            floats.append(np.array([sample.min(), sample.max()]) if sample.size else sample)
        if vectors and len(vectors) <= row:
            raise InputError(f"{where}[{row}] is not a vector, but those before it are: give vectors only")
    names = getattr(data, "classes", None)
    known = list(names) if isinstance(names, list | tuple) and all(isinstance(name, str) for name in names) else None
    if vectors:
        return Samples(as_vectors(vectors, where), labels, known)
    top = float_top(floats, where) if floats else None

    def image(row: int) -> ImageLike:
        return as_image(_pair(data, row, where)[0], f"{where}[{row}]", top)

    return Samples(MadeWhenRead(len(labels), image), labels, known)


def _pairs(data: Any, where: str) -> Iterator[tuple[Any, Any]]:
    return (_pair(data, row, where) for row in range(len(data)))


def _pair(data: Any, row: int, where: str) -> tuple[Any, Any]:
    """The sample and the label of an item: its first two values, or those called image and label."""
    try:
        item = data[row]
    except Exception as error:  # foreign code may raise anything
        words = " ".join(str(error).split())[:150]
        raise InputError(f"{where}[{row}] cannot be fetched: {type(error).__name__}: {words}") from error
    if isinstance(item, dict):
        item = tuple(item[name] for name in ("image", "label") if name in item)
    if not isinstance(item, list | tuple) or len(item) < 2:
        raise InputError(f"{where}[{row}] is {type(item).__name__}: must be a pair (sample, label)")
    label = without_torch(item[1], f"{where}[{row}][1]")
    return without_torch(item[0], f"{where}[{row}][0]"), label.item() if getattr(label, "size", 0) == 1 else label
