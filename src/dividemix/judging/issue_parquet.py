"""The lines of label_issues.csv as a .parquet file, for tools that read millions of lines (pyarrow, an extra)."""

import importlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any

from dividemix import atomic
from dividemix.errors import InputError

_ROWS = 20_000  # written at a time
_NUMBERS = ("duplicate_set",)  # columns whose values are integers, or empty


def has_pyarrow() -> bool:
    """Whether .parquet files can be written."""
    try:
        importlib.import_module("pyarrow.parquet")
    except Exception:  # a broken installation raises anything
        return False
    return True


def write_parquet(rows: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Write rows, which have the same columns, in blocks. A number that is missing is null.

    Raises:
        InputError: if pyarrow is missing.
    """
    try:
        pa, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except Exception as error:
        raise InputError(f"{path}: needs pyarrow: pip install 'dividemix[parquet]'") from error
    blocks = _blocks(rows)
    first = next(blocks, [])
    types = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}
    columns = first[0].items() if first else ()
    schema = pa.schema({name: types[int if name in _NUMBERS else type(value)] for name, value in columns})
    with atomic.replacing(path) as file, parquet.ParquetWriter(file, schema) as writer:
        for block in chain([first] if first else [], blocks):
            writer.write_table(pa.Table.from_pylist(block, schema))


def _blocks(rows: Iterable[Mapping[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """The rows in lists; a number that is missing becomes None."""
    each = iter(rows)
    while block := list(islice(each, _ROWS)):
        yield [
            {name: None if value == "" and name in _NUMBERS else value for name, value in row.items()} for row in block
        ]
