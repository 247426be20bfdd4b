"""Data in memory: arrays, tensors, lists of images, and objects with the interface of Hugging Face data sets."""

import dataclasses
from collections.abc import Sequence
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dividemix.data.assemble import Listing, assemble, check_memory, with_test
from dividemix.data.classes import numbered, printable
from dividemix.data.common_shape import check_image_size
from dividemix.data.image_files import MadeWhenRead
from dividemix.data.images import ImageLike, UnreadableImage
from dividemix.data.readers.labelled import labelled
from dividemix.data.readers.parquet import class_name
from dividemix.data.source import Images, Source, check_samples
from dividemix.data.votes import Votes, consensus
from dividemix.errors import InputError, shown

_IMAGE_COLUMNS = ("image", "img", "path")


def read_arrays(
    data: Any,
    labels: Any = None,
    *,
    true_labels: Any = None,
    test: Any = None,
    test_labels: Any = None,
    classes: Sequence[str] | None = None,
    annotators: Sequence[str] | None = None,
    name: str = "data",
    path_column: str | None = None,
    label_column: str = "label",
    features_column: str | None = None,
    image_size: int | None = None,
    memory_gb: float = 4.0,
) -> Source:
    """Make a source of images or vectors in memory.

    `data` and `test` are one of these:

    - arrays or tensors (N, H, W), (N, H, W, K) or (N, K, H, W), K 1 or 3, of uint8 or of floats in [0, 1]; they keep
      their size;
    - arrays or tensors of vectors, numbers (N, D), or lists of N vectors;
    - lists of paths, of file contents, of Pillow images, or of arrays of different sizes; they are resized like image
      files (see `assemble`);
    - objects with the interface of `datasets.Dataset`, with images in `path_column` (default: `image`, `img` or
      `path`), or vectors in `features_column`, and labels in `label_column`.

    Labels are text or integers; with `classes`, integers are positions in it. Labels (N, A) are the votes of A
    annotators, NaN or None for no vote, and `annotators` their names: the labels are the consensus. `true_labels` are
    for scoring only.
    Raises InputError, naming the argument that is wrong.
    """
    check_memory(memory_gb)
    images, columns, known = _samples(data, "data", path_column, label_column, features_column)
    if classes is not None and (isinstance(classes, str) or not _are_texts(_items(classes))):
        raise InputError(f"classes is {shown(classes)}: must be a list of names (text)")
    names = list(known or () if classes is None else classes) or None
    if names and len(set(names)) < len(names):
        raise InputError(f"two of the {len(names)} classes have the same name: use different names")
    labels = columns if labels is None else labels
    votes = _votes(labels, annotators, names, len(images))
    given = _names(labels if votes is None else votes[0], names, "labels", len(images))
    truth = None if true_labels is None else _names(true_labels, names, "true_labels", len(images))
    found, notes = (None, ()) if votes is None else (votes[1], (votes[1].describe(),))
    if isinstance(images, np.ndarray):
        if image_size is not None:
            raise InputError(f"image_size is {shown(image_size)}, but data is an array: resize the array itself")
        check_samples(images, f"{name}: data")
        source = labelled(name, images, given, true_labels=truth, classes=names)
        source = dataclasses.replace(source, votes=found, notes=notes)
    else:
        check_image_size(image_size)
        listing = Listing(
            where=name,
            files=images,
            paths=_paths(images),
            labels=given,
            true_labels=truth,
            classes=names,
            votes=found,
            notes=notes,
        )
        source = dataclasses.replace(assemble(listing, image_size=image_size, memory_gb=memory_gb), name=name)
    if test is None:
        if test_labels is not None:
            raise InputError("test_labels are given, but test is not: give both or none")
        return source
    images, columns, _ = _samples(test, "test", path_column, label_column, features_column)
    given = _names(columns if test_labels is None else test_labels, names, "test_labels", len(images))
    if isinstance(images, np.ndarray):
        number = numbered(given, source.classes, "test_labels")
        return dataclasses.replace(source, test_images=images, test_labels=number)
    listing = Listing(where=name, files=images, paths=_paths(images), labels=given)
    return with_test(source, listing, memory_gb=memory_gb)


def _samples(
    data: Any, where: str, image_column: str | None, label_column: str, features_column: str | None
) -> tuple[NDArray[Any] | Sequence[ImageLike], Any, Sequence[str] | None]:
    """Images or vectors as one array, or a list of images; of a data set with columns also labels and class names."""
    if all(hasattr(data, name) for name in ("features", "column_names", "__getitem__", "__len__")):
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
                raise UnreadableImage(f"cannot be fetched: {' '.join(str(error).split())[:150]}") from error
            return as_image(item, f"{where}[{row}][{column!r}]")

        names = getattr((data.features or {}).get(label_column), "names", None)
        if features_column is not None:
            return as_vectors(data[features_column], f"{where}[{features_column!r}]"), list(data[label_column]), names
        return MadeWhenRead(len(data), image), list(data[label_column]), names
    items = array_or_list(data, where)
    if isinstance(items, np.ndarray):
        return items if items.ndim == 2 else as_images(items, where), None, None
    if items and all(map(_is_vector, items)):
        return as_vectors(items, where), None, None
    shapes = {item.shape if isinstance(item, np.ndarray) else None for item in items}
    if len(shapes) == 1 and None not in shapes:
        return as_images(np.stack(items), where), None, None
    return [as_image(item, f"{where}[{number}]") for number, item in enumerate(items)], None, None


def _is_vector(item: Any) -> bool:
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
    data = _without_torch(data, where)
    if isinstance(data, np.ndarray) and data.dtype.kind in "biufc":
        return data
    if not isinstance(data, list | tuple | np.ndarray) or (isinstance(data, np.ndarray) and data.ndim != 1):
        raise InputError(
            f"{where} is {type(data).__name__}: must be an array, a tensor, a list of images or paths, "
            "or a data set with columns"
        )
    return [_without_torch(item, f"{where}[{number}]") for number, item in enumerate(data)]


def _without_torch(data: Any, where: str) -> Any:
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
        raise InputError(f"{where} is a tensor ({kind}): must be a dense tensor of numbers, not on meta") from error


def as_images(images: NDArray[Any], where: str) -> Images:
    """The array (N, H, W), (N, H, W, K) or (N, K, H, W), uint8 or in [0, 1], as uint8 (N, H, W, K); else InputError."""
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
    return np.ascontiguousarray(_as_uint8(images, where))


def _as_uint8(values: NDArray[Any], where: str) -> NDArray[np.uint8]:
    """Levels from 0 to 255, from integers in that range or floats in [0, 1]."""
    if values.dtype == np.uint8 or values.size == 0:
        return values.astype(np.uint8, copy=False)
    if values.dtype.kind not in "iuf":
        raise InputError(f"{where} has type {values.dtype}: must be uint8, or floats in [0, 1]")
    low, high = values.min(), values.max()
    top = 1 if values.dtype.kind == "f" else 255
    if not (low >= 0 and high <= top):  # NaN too is refused
        raise InputError(f"{where} has {values.dtype} values from {low} to {high}: must be from 0 to {top}")
    return np.rint(values * 255).astype(np.uint8) if top == 1 else values.astype(np.uint8)


def as_image(item: Any, where: str) -> ImageLike:
    """One image of a list or column: a path, a file's content, or a Pillow image, also of an array; else InputError."""
    from PIL import Image

    if isinstance(item, dict):  # an image that a data set has not decoded
        item = item.get("path") if item.get("bytes") is None else item["bytes"]
    if isinstance(item, str | Path):
        return Path(item)
    if isinstance(item, bytes | Image.Image):
        return item
    if isinstance(item, np.ndarray) and item.ndim in (2, 3):
        (image,) = as_images(item[np.newaxis], where)
        if image.shape[2] not in (1, 3, 4) or 0 in image.shape:
            raise InputError(f"{where} has shape {item.shape}: must have pixels with 1 or 3 channels")
        return Image.fromarray(image[..., 0] if image.shape[2] == 1 else image)
    raise InputError(f"{where} is {type(item).__name__}: must be a path, bytes, a Pillow image or an array")


def _votes(
    labels: Any, annotators: Any, classes: Sequence[str] | None, num_images: int
) -> tuple[list[str | None], Votes] | None:
    """The consensus of votes (N, A) and the votes; None if the labels are one for each image."""
    rows = _items(_without_torch(labels.values if hasattr(labels, "columns") else labels, "labels"))
    if not rows or not all(isinstance(row, list | tuple | np.ndarray) for row in rows):
        if annotators is not None:
            raise InputError("annotators are given, but labels are not of shape (N, A): give a label of each annotator")
        return None
    table = [_items(row) or [] for row in rows]
    num_annotators = max(map(len, table))
    if num_annotators < 2:
        return None  # these are no votes, and no labels
    names = _items(getattr(labels, "columns", None) if annotators is None else annotators)
    names = [f"annotator {number + 1}" for number in range(num_annotators)] if names is None else list(map(str, names))
    if any(len(row) != num_annotators for row in table) or len(set(names)) != num_annotators:
        raise InputError(f"labels have {num_annotators} columns, annotators are {shown(names)}: give one name for each")
    votes = []
    for number, row in enumerate(table):
        votes.append({who: vote for who, value in zip(names, row, strict=True) if (vote := class_name(value, classes))})
        if not votes[-1]:
            raise InputError(f"labels[{number}] has no vote: give at least one for each image, or leave the image out")
    if len(votes) != num_images:
        raise InputError(f"labels are {len(votes)}, but there are {num_images} images: give one row for each image")
    return consensus(votes, names)


def _paths(images: Sequence[ImageLike]) -> list[str]:
    """The names of images; an image without a path is named by its number."""
    known = images if isinstance(images, list) else [None] * len(images)  # a column would decode each image
    return [printable(str(file)) if isinstance(file, Path) else f"image {i}" for i, file in enumerate(known)]


def _items(values: Any) -> list[Any] | None:
    """The items of a list or an array; None if it has none."""
    try:
        return list(values.tolist() if isinstance(values, np.ndarray) else values)
    except (TypeError, NotImplementedError):
        return None


def _are_texts(items: list[Any] | None) -> bool:
    return items is not None and all(isinstance(item, str) for item in items)


def _names(labels: Any, classes: Sequence[str] | None, where: str, num_images: int) -> list[str]:
    if labels is None:
        raise InputError(f"{where} are missing: give one for each sample")
    labels = _without_torch(labels, where)
    values = None if isinstance(labels, str | bytes) else _items(labels)
    if values is None:
        raise InputError(f"{where} is {shown(labels)}: must be a list or an array, one label for each sample")
    if len(values) != num_images:
        raise InputError(f"{where} are {len(values)}, but there are {num_images} samples: give one for each")
    names = []
    for number, value in enumerate(values):
        name = None if isinstance(value, list | tuple | dict | set) else class_name(value, classes)
        if name is None:
            allowed = "text or an integer" if classes is None else f"a class's name or number, 0 to {len(classes) - 1}"
            raise InputError(f"{where}[{number}] is {shown(value, 50)}: must be {allowed}")
        names.append(name)
    return names
