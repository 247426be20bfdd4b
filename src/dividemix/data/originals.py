"""The image files of a run's samples as they were given, found again by its settings. No image is opened."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from dividemix.data.builtin import BUILT_IN
from dividemix.data.images import ImageLike
from dividemix.data.listing import Listing
from dividemix.data.readers.listings import list_data
from dividemix.data.readers.table_columns import TableColumns


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
    if built_in is None:
        return list_data(data, TableColumns.of(settings))
    if built_in.lister is None or root is None:
        return None
    train: Listing = resolve_name(built_in.lister)(Path(root)).train
    return train
