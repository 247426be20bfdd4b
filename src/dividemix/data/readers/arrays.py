"""Data of a Python program as a source: arrays, lists, pairs, tables, and data sets of torch or Hugging Face."""

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dividemix.data.assemble import assemble, check_memory, with_test
from dividemix.data.classes import are_text, label_type, numbered, printable
from dividemix.data.column_types import RowColumns
from dividemix.data.common_shape import check_image_size
from dividemix.data.images import ImageLike
from dividemix.data.listing import Listing
from dividemix.data.readers.frame import image_column, is_frame, list_frame, names_of_numbers, numbers_like, numbers_of
from dividemix.data.readers.frame_columns import columns_of
from dividemix.data.readers.given_labels import class_list, have_names, names_of, type_of, votes_of
from dividemix.data.readers.labelled import labelled
from dividemix.data.readers.row_table import rows_and_labels_like, rows_of_columns
from dividemix.data.readers.samples import samples_of
from dividemix.data.readers.vote_columns import VoteColumns
from dividemix.data.source import Source, check_samples
from dividemix.data.texts import as_texts
from dividemix.errors import InputError, shown

_REMEDY = "; set image_root to the folder that paths start from; of texts, give a table and text_column"


def read_arrays(
    data: Any,
    labels: Any = None,
    *,
    true_labels: Any = None,
    test: Any = None,
    test_labels: Any = None,
    classes: Sequence[str] | None = None,
    annotators: Sequence[str] | str | None = None,
    annotator_column: str | None = None,
    name: str = "data",
    path_column: str | None = None,
    label_column: str = "label",
    image_root: Path | str | None = None,
    features_column: str | None = None,
    text_column: str | None = None,
    row_columns: RowColumns | None = None,
    image_size: int | None = None,
    memory_gb: float = 4.0,
) -> Source:
    """Make a source of images or vectors in memory.

    `data` and `test` are one of these:

    - arrays or tensors (N, H, W), (N, H, W, K) or (N, K, H, W), K 1 or 3, of uint8, of floats from 0 to 1, or of floats
      from 0 to 255; they keep their size;
    - arrays or tensors of vectors, numbers (N, D), or lists of N vectors;
    - lists of paths, of file contents, of Pillow images, or of arrays of different sizes; they are resized like image
      files (see `assemble`);
    - lists of pairs (sample, label), and data sets that give such pairs by number, as those of torch do;
    - tables of pandas or polars, with columns as in a .csv table; the column of images may have images, too;
    - tables with `row_columns`: their rows are the samples; lists of dicts are such tables, too;
    - tables with a `text_column`, and lists of texts: strings, unless one ends like an image, all name files, or there
      is an `image_root`;
    - objects with the interface of `datasets.Dataset`, with images in `path_column` (default: `image`, `img` or
      `path`), or vectors in `features_column`, and labels in `label_column`.

    Paths start from `image_root`, or from the working directory.
    Labels are text or integers; with `classes`, integers are positions in it. Labels (N, A) are the votes of A
    annotators, NaN or None for no vote, and `annotators` their names: the labels are the consensus. For a table,
    `annotators` and `annotator_column` are those of a .csv table. `true_labels` are for scoring only. Raises
    InputError, naming the argument that is wrong.
    """
    check_memory(memory_gb)
    check_image_size(image_size)
    labels, true_labels, test_labels = (
        list(each) if isinstance(each, Iterator) else each for each in (labels, true_labels, test_labels)
    )
    root = None if image_root is None else Path(image_root)
    columns: dict[str, Any] = {"image_column": path_column, "label_column": label_column}
    columns |= {"features_column": features_column, "are_paths": root is not None}
    names = class_list(classes, None)
    votes = None
    if row_columns is not None:
        if labels is not None or true_labels is not None or test_labels is not None:
            raise InputError(
                "target is given, so the labels are in its column, and true labels in the column true_label: leave"
                " labels, true_labels and test_labels out"
            )
        return _rows(data, test, row_columns, name)
    if text_column is not None:
        data, labels = _text_columns(data, labels, "data", text_column, label_column)
        if test is not None:
            test, test_labels = _text_columns(test, test_labels, "test", text_column, label_column)
    if is_frame(data) and (labels is None or image_column(data, path_column)):
        if labels is not None or true_labels is not None:
            raise InputError("data is a table: put labels and true labels into its columns label and true_label")
        named = annotators if annotators is None or isinstance(annotators, str) else ",".join(map(str, annotators))
        vote_columns = VoteColumns.of(named, annotator_column)
        train, own_test = list_frame(
            data,
            "data",
            path_column=path_column,
            label_column=label_column,
            classes=names,
            image_root=root,
            votes=vote_columns,
        )
        of_votes = () if vote_columns is None else vote_columns.annotators
        own = [label for one in of_votes or (label_column,) for label in data[one].to_list()]
        about: dict[str, Any] = {"label_type": type_of(own, names), "has_names": have_names(own, names)}
        read = assemble(train, image_size=image_size, memory_gb=memory_gb)
        source = dataclasses.replace(read, name=name, **about)
        if own_test is not None:
            if test is not None:
                raise InputError("test is a second test set: data has its own, in its column split; leave it out")
            return with_test(source, own_test, memory_gb=memory_gb)
    else:
        samples, own_labels, known = samples_of(numbers_of(data, "data") if is_frame(data) else data, "data", **columns)
        names = class_list(classes, known)
        labels = own_labels if labels is None else labels
        votes = votes_of(labels, annotators, names, len(samples))
        given = names_of(labels if votes is None else votes[0], names, "labels", len(samples))
        truth = None if true_labels is None else names_of(true_labels, names, "true_labels", len(samples))
        about = {"label_type": type_of(labels, names), "has_names": have_names(labels, names)}
        found: dict[str, Any] = {} if votes is None else {"votes": votes[1], "notes": (votes[1].describe(),)}
        if isinstance(samples, np.ndarray):
            if image_size is not None:
                raise InputError(f"image_size is {shown(image_size)}, but data is an array: resize the array itself")
            check_samples(samples, f"{name}: data")
            found |= {**about, "text_column": text_column}
            found["feature_names"] = names_of_numbers(data) if is_frame(data) else None
            source = labelled(name, samples, given, true_labels=truth, classes=names, **found)
        else:
            listing = _listing(name, samples, given, root, true_labels=truth, classes=names, **found)
            read = assemble(listing, image_size=image_size, memory_gb=memory_gb)
            source = dataclasses.replace(read, name=name, **about)
    if test is None:
        if test_labels is not None:
            raise InputError("test_labels are given, but test is not: give both or none")
        return source
    return _with_test(source, test, test_labels, names, root, memory_gb, columns)


def _rows(data: Any, test: Any, named: RowColumns, name: str) -> Source:
    """The rows of a table in memory as a source, and those of another to test on."""
    columns = columns_of(data, "data")
    source = rows_of_columns(columns, "data", named, name=name)
    own = columns.cells[named.target]
    source = dataclasses.replace(source, label_type=label_type(own), has_names=are_text(own))
    if test is None:
        return source
    if source.test_samples is not None:
        raise InputError("test is a second test set: data has its own, in its column split; leave it out")
    rows, labels = rows_and_labels_like(source, columns_of(test, "test"), "test", named.target)
    return dataclasses.replace(source, test_samples=rows, test_labels=labels)


def _text_columns(data: Any, labels: Any, where: str, text_column: str, label_column: str) -> tuple[Any, Any]:
    """The texts of a table, and its labels unless they are given."""
    cells = columns_of(data, where).cells
    for column in (text_column, *((label_column,) if labels is None else ())):
        if column not in cells:
            found = ", ".join(repr(one[:50]) for one in list(cells)[:20])
            raise InputError(f"{where} has no column {column!r}: it has {found}")
    return as_texts(cells[text_column]), cells[label_column] if labels is None else labels


def _with_test(
    source: Source,
    test: Any,
    labels: Any,
    classes: Sequence[str] | None,
    image_root: Path | None,
    memory_gb: float,
    columns: dict[str, Any],
) -> Source:
    """The source with other data in memory as its test set."""
    if is_frame(test) and labels is None:
        path, label = columns["image_column"], columns["label_column"]
        listing, _ = list_frame(
            test, "test", path_column=path, label_column=label, classes=classes, image_root=image_root, votes=None
        )
        return with_test(source, listing, memory_gb=memory_gb)
    samples, own_labels, _ = samples_of(
        numbers_like(test, source.feature_names, "test") if is_frame(test) else test, "test", **columns
    )
    given = names_of(own_labels if labels is None else labels, classes, "test_labels", len(samples))
    if isinstance(samples, np.ndarray):
        number = numbered(given, source.classes, "test_labels")
        return dataclasses.replace(source, test_samples=samples, test_labels=number)
    return with_test(source, _listing(source.name, samples, given, image_root), memory_gb=memory_gb)


def _listing(
    where: str, images: Sequence[ImageLike], labels: Sequence[str], image_root: Path | None, **known: Any
) -> Listing:
    """Images with their labels; an image without a path is named by its number."""
    files = images
    if image_root is not None and isinstance(images, list):
        files = [image_root / file if isinstance(file, Path) else file for file in images]
    listed = images if isinstance(images, list) else [None] * len(images)  # a data set would decode each image
    paths = [printable(str(file)) if isinstance(file, Path) else f"image {i}" for i, file in enumerate(listed)]
    return Listing(where=where, files=files, paths=paths, labels=labels, remedy=_REMEDY, **known)
