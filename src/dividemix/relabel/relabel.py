"""Write corrected data: the data with the labels that a reviewer decided on, ready for training."""

import csv
import io
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from dividemix import atomic
from dividemix.data.readers.folder import list_folder
from dividemix.data.readers.npz import known_names, read_npz
from dividemix.data.readers.shard_sets import find_shards
from dividemix.data.readers.table import list_table
from dividemix.data.source import Source
from dividemix.data.text_table import read_text_table
from dividemix.data.votes import VOTE_ARRAYS
from dividemix.errors import InputError
from dividemix.meant import or_meant_path
from dividemix.relabel.corrected_coco import corrected_coco
from dividemix.relabel.corrected_parquet import corrected_parquet
from dividemix.relabel.corrected_rows import corrected_rows, kind_of_rows
from dividemix.relabel.corrected_texts import corrected_texts, kind_of_texts
from dividemix.relabel.corrections import FOREIGN, Correction, by_path, check_agreement, check_given, class_number
from dividemix.relabel.decisions import read_decisions


@dataclass(frozen=True, kw_only=True)
class Relabelled:
    """The number of samples whose label the reviewer changed or kept, and of those skipped, deleted or ambiguous."""

    num_changed: int
    num_kept: int
    num_skipped: int
    num_deleted: int = 0
    num_ambiguous: int = 0

    @classmethod
    def of(cls, decided: Sequence[Correction]) -> "Relabelled":
        """The numbers of these corrections."""
        actions = Counter(one.action for one in decided)
        return cls(
            num_changed=sum(one.changes for one in decided),
            num_kept=sum(one.new_label == one.given_label for one in decided),
            num_skipped=actions["skip"],
            num_deleted=actions["delete"],
            num_ambiguous=actions["ambiguous"],
        )


def relabel(
    data: Path,
    corrections: Path | Sequence[Correction],
    out: Path,
    *,
    path_column: str = "path",
    label_column: str = "label",
    text_column: str | None = None,
    target: str | None = None,
    key: str | None = None,
    overwrite: bool = False,
) -> Relabelled:
    """Write the content of `data` with the corrected labels to `out`; `dividemix train OUT` reads it.

    `corrections` are a file of them, or what was read from one. Deleted samples are left out, ambiguous ones keep their
    label. A .csv or .tsv table keeps all bytes of the records whose label does not change. A .parquet table keeps its
    other columns and its metadata, an .npz file its other arrays. With `text_column`, the samples are the texts of a
    .csv or .tsv table, with `target` the rows of a table, whose names are in `key`: a correction is found by its index.
    For a folder with a subfolder per class, `out` becomes a .csv table of its images, with a column `split` if the
    folder has test images. Paths in a table are relative to it, so `out` must be in the folder of the table; for a
    folder of images, in it, next to it or above it.
    Raises InputError for corrections that do not fit the data, for an `out` from which images cannot be found, and if
    `out` exists with another content, unless `overwrite`.
    """
    has_paths = text_column is None and target is None
    kind = kind_of(data) if has_paths else kind_of_rows(data) if text_column is None else kind_of_texts(data)
    decided = read_decisions(corrections) if isinstance(corrections, Path) else list(corrections)
    _check_out(data, corrections if isinstance(corrections, Path) else None, out, kind, has_paths)
    if target is not None:
        content = corrected_rows(data, decided, target, key)
    elif text_column is not None:
        content = corrected_texts(data, decided, text_column, label_column)
    elif kind in _TABLES:
        content = _TABLES[kind](data, decided, path_column, label_column)
    else:
        content = _corrected_npz(data, decided) if kind == ".npz" else _folder_as_table(data, decided, out)
    if out.exists() and out.is_file() and not overwrite and out.read_bytes() != content:
        raise InputError(f"{out}: exists with another content: choose another out, or add overwrite")
    atomic.write_bytes(out, content)
    return Relabelled.of(decided)


def without_ambiguous(decided: Sequence[Correction]) -> list[Correction]:
    """The corrections, with the ambiguous samples deleted."""
    return [replace(one, action="delete") if one.action == "ambiguous" else one for one in decided]


def kind_of(data: Path) -> str:
    """The kind of data, a folder or the extension of a file. Raises InputError if it cannot be corrected."""
    if not data.exists():
        raise InputError(f"{data}: no such file or folder: {or_meant_path(data, 'name what was trained on')}")
    kind = "folder" if data.is_dir() else data.suffix.lower()
    if kind == ".tar" or (kind == "folder" and find_shards(str(data)) is not None):
        raise InputError(
            f"{data}: labels in shards cannot be changed: write the shards again with the corrected labels"
        )
    if kind != "folder" and kind not in _TABLES and kind != ".npz":
        raise InputError(
            f"{data}: must be a folder with one subfolder per class, or a .csv, .tsv, .parquet, .json or .npz file"
        )
    return kind


def default_out(data: Path) -> Path:
    """The default for `out`: next to the data, with `_corrected` in the name."""
    if data.is_dir():
        return data.resolve().with_name(f"{data.resolve().name}_corrected.csv")
    return data.with_name(f"{data.stem}_corrected{data.suffix}")


def _check_out(data: Path, corrections: Path | None, out: Path, kind: str, has_paths: bool) -> None:
    """Raise InputError unless `out` has the right extension, overwrites no input, and its paths reach the images."""
    suffix = ".csv" if kind == "folder" else kind
    if out.suffix.lower() != suffix:
        raise InputError(f"{out}: the corrected labels of {data} must be a {suffix} file: change the extension")
    if not out.parent.is_dir():
        raise InputError(f"{out}: no folder {out.parent}: create it, or choose another")
    if out.is_dir():
        raise InputError(f"{out}: is a folder: give the name of a file")
    if out.resolve() in (data.resolve(), corrections and corrections.resolve()):
        raise InputError(f"{out}: is an input and would be overwritten: choose another name for the corrected labels")
    home, own = out.resolve().parent, data.resolve()
    if has_paths and not (kind == ".npz" or own.parent == home or (kind == "folder" and own.is_relative_to(home))):
        raise InputError(
            f"{out}: paths in a table are relative to it and must not leave its folder: "
            f"put it next to {data}, such as {default_out(data)}"
        )


def _folder_as_table(folder: Path, decided: Sequence[Correction], out: Path) -> bytes:
    """A .csv table of the images in a folder, with paths relative to the folder of `out`."""
    train, test = list_folder(folder)
    rows = dict(enumerate(zip(train.paths, train.labels, strict=True)))
    new = by_path(decided, rows, folder)
    lines = [
        (path, new[row].new_label if row in new else label, "train")
        for row, (path, label) in rows.items()
        if row not in new or not new[row].deletes
    ]
    if test:
        lines += [(path, label, "test") for path, label in zip(test.paths, test.labels, strict=True)]
    below = folder.resolve().relative_to(out.resolve().parent)
    num_columns = 3 if test else 2
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("path", "label", "split")[:num_columns])
    writer.writerows(((below / path).as_posix(), *rest)[:num_columns] for path, *rest in lines)
    return text.getvalue().encode()


def _corrected_text(table: Path, decided: Sequence[Correction], path_column: str, label_column: str) -> bytes:
    """A .csv or .tsv table in which only the records of changed labels are written again, and deleted ones are gone."""
    text = read_text_table(table, {path_column, label_column})
    if decided and path_column not in text.columns and not any(one.path for one in decided):
        advice = "for a table of texts, name their column by text_column; for rows, name the target"
        raise InputError(f"{decided[0].where}: no path: {advice}")
    list_table(table, path_column=path_column, label_column=label_column)  # raises unless it is such a table
    path, label = text.columns.index(path_column), text.columns.index(label_column)
    records = [one for one in text.rows() if len(one.fields) == len(text.columns) and one.value(path)]
    rows = {row: (record.value(path), record.value(label)) for row, record in enumerate(records)}
    for row, one in by_path(decided, rows, table).items():
        if one.deletes:
            records[row].text = ""
        else:
            records[row].replace(label, one.new_label, text.delimiter)
    return text.content(records)


def _corrected_npz(file: Path, decided: Sequence[Correction]) -> bytes:
    """The arrays of an .npz file, with the changed labels in y_train and without the deleted training samples.

    If a label changes, the votes of annotators are left out: the labels are no longer their consensus.
    """
    source = read_npz(file)
    with np.load(file, allow_pickle=False) as archive:
        names = known_names(archive.files)
        arrays = {name: archive[given] for name, given in names.items()}
    given = arrays["y_train"]
    labels, is_text = given.tolist(), given.dtype.kind == "U"
    is_left = np.ones(len(labels), dtype=np.bool_)
    decided_on: dict[int, Correction] = {}
    for one in decided:
        place = _place(one, source, file)
        check_agreement(decided_on.setdefault(place, one), one)
        check_given(one, source.classes[source.train_labels[place]], f"{file} has y_train[{place}]")
        is_left[place] = not one.deletes
        if one.changes:
            number = None if is_text and "classes" not in arrays else class_number(one, source.classes, file)
            labels[place] = one.new_label if is_text else number
    arrays["y_train"] = np.array(labels, dtype=None if is_text else given.dtype)
    arrays |= {name: arrays[name][is_left] for name in _OF_TRAINING if name in arrays and not is_left.all()}
    if any(one.changes for one in decided):
        arrays = {name: array for name, array in arrays.items() if name not in VOTE_ARRAYS}
    content = io.BytesIO()
    np.savez_compressed(content, **{names[name]: array for name, array in arrays.items()})
    return content.getvalue()


def _place(one: Correction, source: Source, file: Path) -> int:
    """The position of a correction's sample in the arrays: by its path if that is unique, else by its index."""
    if one.path and source.paths is None:
        raise InputError(f"{one.where}: path is {one.path[:200]!r}, but {file} has no paths: {FOREIGN}")
    places = np.flatnonzero(source.rows == one.index)
    if source.paths is not None:
        same = np.array([place for place, path in enumerate(source.paths) if path.strip() == one.path], dtype=np.int64)
        places = same if len(same) == 1 else np.intersect1d(same, places)
    if not len(places):
        named = f" with path {one.path[:200]!r}" if one.path else ""
        raise InputError(f"{one.where}: {file} has no training sample {one.index}{named}: {FOREIGN}")
    return int(places[0])


# Arrays with an entry for each training sample.
_OF_TRAINING = ("x_train", "y_train", "y_true", "paths", "rows", "vote_choices", "vote_confidence")
_TABLES: dict[str, Callable[[Path, Sequence[Correction], str, str], bytes]] = {
    ".csv": _corrected_text,
    ".tsv": _corrected_text,
    ".parquet": corrected_parquet,
    ".json": corrected_coco,
}
