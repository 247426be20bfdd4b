"""The images to predict: files, folders and tables as one list of files, each with its display name."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from dividemix.data.classes import natural_key
from dividemix.data.images import image_suffixes
from dividemix.data.text_table import read_text_table
from dividemix.data.walk import walk
from dividemix.errors import InputError
from dividemix.meant import or_meant_path

_TABLES = (".csv", ".tsv")
_COLUMN = "path"


def list_images(places: Iterable[Path]) -> list[tuple[str, Path]]:
    """The name and the file of each image, in order.

    A folder means the image files below it in natural order, without hidden files; links are followed. A .csv or .tsv
    file means the files in its column `path`, relative to the table; they are displayed as written there. Raises
    InputError if a place does not exist, a table has no paths, or there are no images.
    """
    places = list(places)
    images: list[tuple[str, Path]] = []
    for place in places:
        if place.is_dir():
            images += [(str(path), path) for path in _in_folder(place)]
        elif not place.exists():
            raise InputError(f"{place}: no such file or folder: {or_meant_path(place, 'check the path')}")
        elif place.suffix.lower() in _TABLES:
            images += [(path, place.parent / path) for path in _in_table(place)]
        else:
            images.append((str(place), place))
    if not images:
        raise InputError(f"{', '.join(map(str, places))}: no images found; use .png, .jpg or similar files")
    return images


def _in_folder(folder: Path) -> list[Path]:
    """The image files below a folder."""
    found = []
    for path, reason in walk(folder, folder):
        if not reason and path.suffix.lower() in image_suffixes():
            found.append(path)
    return sorted(found, key=lambda path: natural_key(path.as_posix()))


def _in_table(table: Path) -> Iterator[str]:
    """The paths in a table, as they are written there; blank lines are skipped."""
    text = read_text_table(table, {_COLUMN})
    column = text.column(_COLUMN, "this model takes images: use that name for the column of their paths")
    for record in text.rows():
        path = record.value(column)
        if path:
            yield path
        elif not record.is_blank:
            raise InputError(f"{table}: no path in line {record.line}: give one, or remove the line")
