"""The image files of a run's samples as they were given, found again by its settings. No image is opened."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from dividemix.data.builtin import BUILT_IN
from dividemix.data.images import ImageLike
from dividemix.data.listing import Listing
from dividemix.data.readers.coco import list_coco
from dividemix.data.readers.folder import list_folder
from dividemix.data.readers.parquet import list_parquet
from dividemix.data.readers.shard_sets import find_shards
from dividemix.data.readers.shards import list_shards
from dividemix.data.readers.table import list_table
from dividemix.data.readers.vote_columns import VoteColumns

_TABLES: dict[str, Callable[..., tuple[Listing, Listing | None]]] = {
    ".csv": list_table,
    ".tsv": list_table,
    ".parquet": list_parquet,
    ".json": list_coco,
}
_OF_TABLES = ("path_column", "label_column", "image_root")  # settings that say how to read a table


class Originals(Mapping[int, ImageLike]):
    """The image files of training samples by their row, the position in the data as given; `names` has their names."""

    def __init__(self, listing: Listing):
        rows = range(len(listing.files)) if listing.rows is None else list(map(int, listing.rows))
        self._files, self._place = listing.files, {row: place for place, row in enumerate(rows)}
        self.names = {row: listing.paths[place] for row, place in self._place.items()}

    def __getitem__(self, row: int) -> ImageLike:
        return self._files[self._place[row]]

    def __iter__(self) -> Iterator[int]:
        return iter(self._place)

    def __len__(self) -> int:
        return len(self._place)


def originals(settings: Mapping[str, Any]) -> Originals | None:
    """The image files of the data that the settings of a job name; None for data without files, such as arrays.

    Raises:
        InputError: if the data cannot be read.
    """
    listing = _listing(settings)
    return None if listing is None else Originals(listing)


def _listing(settings: Mapping[str, Any]) -> Listing | None:
    data, root = str(settings["data"]), settings.get("root")
    built_in = BUILT_IN.get(data)
    if built_in is not None:
        if built_in.lister is None or root is None:
            return None
        train: Listing = resolve_name(built_in.lister)(Path(root)).train
        return train
    shards = find_shards(data)
    if shards is not None:
        return list_shards(shards, path_column=settings["path_column"], label_column=settings["label_column"])[0]
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
