"""The image files of a run's samples as they were given, found again by its settings. No image is opened."""

from collections.abc import Mapping
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from dividemix.data.assemble import Listing
from dividemix.data.builtin import BUILT_IN
from dividemix.data.images import ImageLike
from dividemix.data.readers.folder import list_folder
from dividemix.data.readers.parquet import list_parquet
from dividemix.data.readers.table import list_table
from dividemix.data.readers.vote_columns import VoteColumns

_TABLES = {".csv": list_table, ".tsv": list_table, ".parquet": list_parquet}
_OF_TABLES = ("path_column", "label_column", "image_root")  # settings that say how to read a table


def originals(settings: Mapping[str, Any]) -> dict[int, tuple[str, ImageLike]]:
    """Row -> name and file of each training sample, for the data that the settings of a job name.

    The row is the sample's position in the data as given. Empty for data without image files, such as arrays. Raises
    InputError if the data cannot be read.
    """
    listing = _listing(settings)
    if listing is None:
        return {}
    rows = range(len(listing.files)) if listing.rows is None else listing.rows
    return {row: (listing.paths[i], listing.files[i]) for i, row in enumerate(rows)}


def _listing(settings: Mapping[str, Any]) -> Listing | None:
    data, root = str(settings["data"]), settings.get("root")
    built_in = BUILT_IN.get(data)
    if built_in is not None:
        if built_in.lister is None or root is None:
            return None
        train: Listing = resolve_name(built_in.lister)(Path(root)).train
        return train
    path = Path(data)
    if path.is_dir():
        return list_folder(path)[0]
    if path.suffix.lower() not in _TABLES:
        return None
    given = {name: settings[name] for name in _OF_TABLES if settings.get(name) is not None}
    if "image_root" in given:
        given["image_root"] = Path(given["image_root"])
    votes = VoteColumns.of(settings.get("annotators"), settings.get("annotator_column"))
    return _TABLES[path.suffix.lower()](path, votes=votes, **given)[0]
