"""Read a .parquet shard of images in the Hugging Face layout, whose files are copied to the cache once.

A .parquet file cannot be read image by image: its rows are compressed in groups. So the content of its image column is
written to one plain file in the cache, one after the other, as that layout's own library does.
"""

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from dividemix import atomic
from dividemix.data.cache_folder import cache_folder
from dividemix.data.classes import printable
from dividemix.data.readers.parquet import (
    choose_columns,
    class_name,
    class_names,
    damaged_parquet,
    features_of,
    import_pyarrow,
)
from dividemix.data.readers.table import TRUE_LABEL
from dividemix.data.shard_files import LocalShard, ShardFile
from dividemix.data.shard_index import ShardIndex, kept_index
from dividemix.errors import InputError, refused
from dividemix.stored import digest_of

_ROWS = 64  # read at a time: images may have megabytes


class _Columns(NamedTuple):
    image: str
    label: str
    classes: list[str] | None


def classes_of(shard: ShardFile, path_column: str, label_column: str) -> list[str] | None:
    """The names of the classes in the layout of a shard; None if it has none. Raises InputError as `index_parquet`."""
    with _open(shard) as file:
        return _columns(_opened(file, shard), shard, path_column, label_column).classes


def index_parquet(shard: ShardFile, path_column: str, label_column: str) -> tuple[ShardFile, ShardIndex]:
    """What the shard contains, and the file in the cache that has the images.

    The columns are chosen as for a single .parquet file.

    Raises:
        InputError: if the shard is missing or damaged, pyarrow is missing, or the cache cannot be written.
    """
    about = ["parquet", *shard.stamp(), path_column, label_column]
    images = cache_folder() / "shards" / f"{digest_of(b'', about)}.images"

    def make() -> ShardIndex:
        with _open(shard) as file:
            try:
                images.parent.mkdir(parents=True, exist_ok=True)
                return _copied(_opened(file, shard), shard, images, path_column, label_column)
            except OSError as error:
                words = f"{shard.name}: its images cannot be copied to {images.parent}: {error.strerror or error}"
                raise InputError(f"{words}; free some space, or set DIVIDEMIX_CACHE to another folder") from error

    index = kept_index(about, make)
    if not images.is_file() or images.stat().st_size != int(index.sizes.sum()):
        index = make()
    return _Copy(images, index), index


class _Copy(LocalShard):
    """The copied images: each is compared with its checksum when it is read."""

    def __init__(self, path: Path, index: ShardIndex):
        super().__init__(path)
        assert index.sums is not None
        self._offsets, self._sums = index.offsets, index.sums

    def read(self, offset: int, size: int) -> bytes:
        """The content of an image. Raises InputError if it is not what was copied."""
        content = super().read(offset, size)
        place = int(np.searchsorted(self._offsets, offset, side="right")) - 1  # empty ones before it begin there, too
        if zlib.crc32(content) != int(self._sums[place]):
            raise InputError(f"{self.name}: damaged at image {place}: remove the file, and it is copied again")
        return content


def _open(shard: ShardFile) -> BinaryIO:
    try:
        return shard.open()
    except OSError as error:
        raise refused(shard.name, error) from error


def _opened(file: Any, shard: ShardFile) -> Any:
    parquet = import_pyarrow("parquet", Path(shard.name))
    try:
        return parquet.ParquetFile(file)
    except Exception as error:  # pyarrow raises many kinds of errors for damaged files
        raise damaged_parquet(shard.name, error) from error


def _columns(table: Any, shard: ShardFile, path_column: str, label_column: str) -> _Columns:
    schema = table.schema_arrow
    features, name = features_of(schema.metadata), Path(shard.name)
    image, label = choose_columns(list(schema.names), features, path_column, label_column, name)
    if image == label:
        raise InputError(f"{shard.name}: images and labels are both column {image!r}: name two columns")
    return _Columns(image, label, class_names(features, label, name))


def _copied(table: Any, shard: ShardFile, images: Path, path_column: str, label_column: str) -> ShardIndex:
    """Write the content of each image to one file, and return where each is."""
    columns = _columns(table, shard, path_column, label_column)
    has_truth = TRUE_LABEL in table.schema_arrow.names and columns.label != TRUE_LABEL
    names: list[str] = []
    sizes: list[int] = []
    sums: list[int] = []
    labels: list[str | None] = []
    truths: list[str | None] = []
    problems: dict[int, str] = {}
    with atomic.replacing(images) as target:
        for number, (cell, value, truth) in enumerate(_rows(table, shard, columns, has_truth)):
            given = cell if isinstance(cell, dict) else {"bytes": cell}
            content, path = given.get("bytes"), given.get("path")
            label = class_name(value, columns.classes)
            if not isinstance(content, bytes):
                content = b""
                problems[number] = "no image: the shard has only its path" if path else "no image"
            elif label is None:
                known = "no label" if value is None else f"label {str(value)[:50]!r} is not one of the classes"
                problems[number] = known
            target.write(content)
            names.append(printable(path).replace("\0", "") if isinstance(path, str) and path else f"row {number}")
            sizes.append(len(content))
            sums.append(zlib.crc32(content))
            labels.append(label)
            truths.append(class_name(truth, columns.classes))
    ends = np.cumsum(np.array(sizes, dtype=np.int64), dtype=np.int64)
    return ShardIndex(
        names=names,
        offsets=ends - np.array(sizes, dtype=np.int64),
        sizes=np.array(sizes, dtype=np.int64),
        sums=np.array(sums, dtype=np.uint32),
        labels=labels,
        true_labels=truths,
        problems=problems,
    )


def _rows(table: Any, shard: ShardFile, columns: _Columns, has_truth: bool) -> Iterator[tuple[Any, Any, Any]]:
    """The values of image, label and true label of each row."""
    wanted = [columns.image, columns.label, *([TRUE_LABEL] if has_truth else [])]
    try:
        for batch in table.iter_batches(batch_size=_ROWS, columns=wanted):
            cells, values = batch.column(columns.image).to_pylist(), batch.column(columns.label).to_pylist()
            truths = batch.column(TRUE_LABEL).to_pylist() if has_truth else [None] * len(cells)
            yield from zip(cells, values, truths, strict=True)
    except Exception as error:
        raise damaged_parquet(shard.name, error) from error
