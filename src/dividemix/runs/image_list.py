"""Which images to predict: files, folders and tables as one list of files, each with the name it is shown by."""

import csv
import io
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from dividemix.data.classes import natural_key
from dividemix.data.images import image_suffixes
from dividemix.errors import InputError

_DELIMITERS = {".csv": ",;\t", ".tsv": "\t"}
_COLUMN = "path"


def list_images(places: Iterable[Path]) -> list[tuple[str, Path]]:
    """The name and the file of each image, in order.

    A folder stands for the image files below it in natural order, without hidden ones and linked folders; a .csv or
    .tsv file for those in its column `path`, relative to it, which are shown as they stand there.

    Raises:
        InputError: if a place does not exist, a table has no paths, or there are no images at all.
    """
    places = list(places)
    images: list[tuple[str, Path]] = []
    for place in places:
        if place.is_dir():
            images += [(str(path), path) for path in _in_folder(place)]
        elif not place.exists():
            raise InputError(f"{place}: no such file or folder")
        elif place.suffix.lower() in _DELIMITERS:
            images += [(path, place.parent / path) for path in _in_table(place)]
        else:
            images.append((str(place), place))
    if not images:
        raise InputError(f"{', '.join(map(str, places))}: no images found; their names end in .png, .jpg and the like")
    return images


def _in_folder(folder: Path) -> list[Path]:
    """The image files below a folder."""
    found = []
    for top, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths = (Path(top, name) for name in names if not name.startswith("."))
        found += [path for path in paths if path.suffix.lower() in image_suffixes()]
    return sorted(found, key=lambda path: natural_key(path.as_posix()))


def _in_table(table: Path) -> Iterator[str]:
    """The paths in a table, as they stand there; lines without any content are passed over."""
    try:
        text = table.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{table}: not UTF-8: save the table as UTF-8") from error
    try:
        for delimiter in _DELIMITERS[table.suffix.lower()]:
            rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
            header = [name.strip() for name in next(rows, [])]
            if _COLUMN in header:
                break
        else:
            raise InputError(f"{table}: no column {_COLUMN!r}: its first line must name the columns, one of them so")
        column = header.index(_COLUMN)
        for row in rows:
            path = row[column].strip() if column < len(row) else ""
            if path and "\0" not in path:
                yield path
            elif any(field.strip() for field in row):
                raise InputError(f"{table}: no path in line {rows.line_num}")
    except csv.Error as error:
        raise InputError(f"{table}: damaged at line {rows.line_num}: {error}") from error
