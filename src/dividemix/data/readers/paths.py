"""What a path to data is: a kind of file, a folder, a pattern of shards; and whether it exists."""

import os
from pathlib import Path

from dividemix.data.builtin import BUILT_IN
from dividemix.data.readers.list_column import ARROW
from dividemix.data.readers.shard_sets import is_compressed, is_pattern
from dividemix.data.remote_files import is_remote
from dividemix.errors import InputError
from dividemix.meant import nearest, nearest_path

IMAGE_TABLES = (".csv", ".tsv", ".parquet", ".json")  # files with a row for each image
_KINDS = (*IMAGE_TABLES, *ARROW, ".jsonl", ".npy", ".npz", ".tar")


def suffix_of(data: str) -> str:
    """The extension of a file in lower case; empty for a folder, a pattern and an address."""
    is_file = not (is_pattern(data) or is_remote(data) or os.path.isdir(data))  # noqa: PTH112 (Path raises on long names)
    return Path(data).suffix.lower() if is_file else ""


def is_table(data: str | None) -> bool:
    """Whether the data is a file with a row for each image."""
    return data is not None and suffix_of(data) in IMAGE_TABLES


def check_exists(data: str, option: str = "") -> None:
    """Raise InputError unless the data, given as that option, is an existing folder or file of a known kind."""
    if is_pattern(data) or is_compressed(data) or is_remote(data):
        return  # find_shards reports what is wrong
    known = f"a folder with one subfolder for each class, or a {', '.join(_KINDS[:-1])} or {_KINDS[-1]} file"
    shown = repr(data if len(data) < 200 else f"{data[:200]}...")
    where = f"{option} is {shown}" if option else shown
    if not data or not os.path.exists(data):  # noqa: PTH110 (as above)
        if near := nearest_path(data) or nearest(data, BUILT_IN):
            raise InputError(f"{where}: no such file or folder: did you mean {near!r}?")
        if suffix_of(data) in _KINDS:
            raise InputError(f"{where}: no such file")
        raise InputError(f"{where}: no such file or folder. Give {known}; built-in data sets: {', '.join(BUILT_IN)}")
    if not Path(data).is_dir() and suffix_of(data) not in _KINDS:
        sheet = "save the sheet as .csv" if suffix_of(data) in (".xls", ".xlsx", ".ods") else f"give {known}"
        raise InputError(f"{data}: not a data set: {sheet}")
    if not Path(data).is_dir() and not Path(data).is_file():  # a device or a pipe, which may have no end
        raise InputError(f"{where}: not a file or folder: give {known}")


def refuse_same(data: str, test: str) -> None:
    """Raise InputError if the test data is the training data, whose scores would mean nothing."""
    is_there = os.path.exists(data) and os.path.exists(test)  # noqa: PTH110 (not so for a pattern of shards)
    if data == test or (is_there and os.path.samefile(data, test)):  # noqa: PTH121 (both are text)
        raise InputError(f"test is {test!r}: that is the training data: give other samples, or leave it out")
