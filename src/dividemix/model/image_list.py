"""Which images to predict: files, folders and tables as one list of files, each with the name it is shown by."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from dividemix.data.classes import natural_key
from dividemix.data.images import image_suffixes
from dividemix.data.table_text import cut_header, cut_lines, read_table_text
from dividemix.errors import InputError

_TABLES = (".csv", ".tsv")
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
        elif place.suffix.lower() in _TABLES:
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
    text = read_table_text(table)
    delimiter, header = cut_header(text, {_COLUMN}, table)
    if _COLUMN not in header:
        raise InputError(f"{table}: no column {_COLUMN!r}: its first line must name the columns, one of them so")
    column = header.index(_COLUMN)
    filled = ((line, fields) for line, fields in cut_lines(text, delimiter, table) if any(map(str.strip, fields)))
    next(filled)  # the header
    for line, fields in filled:
        path = fields[column].strip() if column < len(fields) else ""
        if not path:
            raise InputError(f"{table}: no path in line {line}")
        yield path
