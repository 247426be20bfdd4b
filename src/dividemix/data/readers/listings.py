"""List the image files of a folder, shards or a table, by the reader of its kind. No image is opened."""

from collections.abc import Callable
from pathlib import Path

from dividemix.data.builtin import BUILT_IN
from dividemix.data.listing import Listing
from dividemix.data.readers.coco import list_coco
from dividemix.data.readers.folder import list_folder
from dividemix.data.readers.list_column import ARROW, find_column
from dividemix.data.readers.parquet import list_parquet
from dividemix.data.readers.paths import check_exists, suffix_of
from dividemix.data.readers.shard_sets import find_shards
from dividemix.data.readers.shards import list_shards
from dividemix.data.readers.table import list_table
from dividemix.data.readers.table_columns import TableColumns
from dividemix.errors import InputError

_TABLES: dict[str, Callable[..., tuple[Listing, Listing | None]]] = {
    ".csv": list_table,
    ".tsv": list_table,
    ".parquet": list_parquet,
    ".json": list_coco,
}


def list_files(data: str, columns: TableColumns) -> tuple[Listing, Listing | None]:
    """The image files of your own data: those to train on, and those to test on if there are any.

    Raises InputError if the data cannot be read.
    """
    if (suffix := suffix_of(data)) in _TABLES:
        return _TABLES[suffix](Path(data), **columns.of_images)
    if data in BUILT_IN:
        raise InputError(f"test {data}: a test set must be a folder or a file of your own")
    shards = find_shards(data)
    if shards is not None:
        return list_shards(shards, path_column=columns.path_column, label_column=columns.label_column)
    return list_folder(Path(data))


def list_data(data: str, columns: TableColumns) -> Listing | None:
    """The image files to train on; None for samples that are not image files, and for built-in data sets.

    Raises InputError if the data cannot be read.
    """
    if data in BUILT_IN or columns.text_column is not None or columns.rows is not None:
        return None
    check_exists(data)
    suffix = suffix_of(data)
    if suffix in (".npy", ".npz", *ARROW):
        return None
    if suffix == ".parquet" and find_column(Path(data), columns.features_column, columns.path_column) is not None:
        return None
    return list_files(data, columns)[0]
