"""Find the shards that a folder, a pattern or a file name means: .tar or .parquet files, to train and to test on."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dividemix.data.classes import natural_sorted, printable
from dividemix.data.readers.rows import TEST_NAMES, TRAIN_NAMES
from dividemix.data.remote_files import find_files, is_remote, named_file, refusing
from dividemix.data.shard_files import LocalShard, ShardFile
from dividemix.errors import InputError, refused
from dividemix.stored import read_bytes

Kind = Literal["tar", "parquet"]
KINDS: tuple[Kind, ...] = ("tar", "parquet")
COMPRESSED = (".gz", ".tgz", ".bz2", ".tbz2", ".xz", ".txz", ".zst")
_CLASS_FILES = ("classes.txt", "classnames.txt")
_BRACES = re.compile(r"\{(?:([0-9]{1,18})\.\.([0-9]{1,18})|([^{}]*,[^{}]*))\}")  # {000..099} or {a,b}
_OF = re.compile(r"(.*?)(\d+)-of-(\d+)(.*)")  # train-00001-of-00010.parquet
_MOST = 1_000_000  # shards of a pattern
_LONGEST = 1 << 24  # bytes of a list of classes


@dataclass(frozen=True, kw_only=True)
class ShardSet:
    """The shards of a data set, in natural order."""

    where: str  # As messages name it
    kind: Kind
    train: Mapping[str, ShardFile]  # by their names, relative to the folder
    test: Mapping[str, ShardFile]
    classes: tuple[str, ...] | None = None  # of a file classes.txt or classnames.txt


def is_pattern(data: str) -> bool:
    """Whether a name stands for several shards, such as shards/{000..099}.tar."""
    return bool(_BRACES.search(data)) or "*" in data


def is_compressed(data: str) -> bool:
    """Whether a name is that of a compressed .tar file."""
    return data.lower().endswith(COMPRESSED) and (".tar" in data.lower() or data.lower().endswith(".tgz"))


def find_shards(data: str) -> ShardSet | None:
    """The shards of a folder, a pattern, a .tar file, or the address of one of these; None for other data.

    A file whose name, or whose folder, has a word such as test or val is to test on, if others are to train on. Raises
    InputError if a shard is missing or compressed.
    """
    if is_compressed(data):
        raise InputError(f"{data}: a compressed .tar file cannot be read by position: decompress it, and give the .tar")
    if is_remote(data):
        return _of_address(data)
    if is_pattern(data):
        return _of_pattern(data)
    path = Path(data)
    if os.path.isdir(data):  # noqa: PTH112 (Path.is_dir raises on names that are too long)
        return _of_folder(path)
    if path.suffix.lower() != ".tar":
        return None
    if not path.is_file():
        raise InputError(f"{data}: no such file")
    return shard_set(data, {path.name: LocalShard(path)}, _reader(path.parent))


def expanded(pattern: str) -> Iterator[str]:
    """The names that a pattern with braces stands for: {008..010} is 008, 009, 010; {a,b} is a, b.

    Raises InputError if there are too many: two braces with a million numbers each would never end.
    """
    for number, name in enumerate(_all_expanded(pattern)):
        if number == _MOST:
            raise InputError(f"{pattern}: names more than {_MOST:,} shards: give fewer at a time")
        yield name


def _all_expanded(pattern: str) -> Iterator[str]:
    match = _BRACES.search(pattern)
    if match is None:
        yield pattern
        return
    low, high, words = match.groups()
    if words is None and not 0 <= int(high) - int(low) < _MOST:
        raise InputError(f"{pattern}: {match[0]} must go from a number to a larger one, for at most {_MOST:,} shards")
    choices = words.split(",") if words is not None else (f"{n:0{len(low)}d}" for n in range(int(low), int(high) + 1))
    for choice in choices:
        yield from _all_expanded(pattern[: match.start()] + choice + pattern[match.end() :])


def shard_set(where: str, found: Mapping[str, ShardFile], text_of: Callable[[str], str | None]) -> ShardSet:
    """The set of shards with these names, relative to a folder whose text files `text_of` reads."""
    kind: Kind = "tar" if any(name.lower().endswith(".tar") for name in found) else "parquet"
    names = natural_sorted(name for name in found if name.lower().endswith(f".{kind}"))
    _check_complete(names, where)
    tests = [name for name in names if _is_test(name)]
    if len(tests) == len(names):
        tests = []
    lines = next((text for name in _CLASS_FILES if (text := text_of(name)) is not None), None)
    classes = None if lines is None else tuple(printable(line.strip()) for line in lines.splitlines() if line.strip())
    if classes is not None and not 1 < len(set(classes)) == len(classes):
        raise InputError(f"{where}: its list of classes must have at least two different names, one in each line")
    return ShardSet(
        where=where,
        kind=kind,
        train={name: found[name] for name in names if name not in tests},
        test={name: found[name] for name in tests},
        classes=classes,
    )


def _of_pattern(data: str) -> ShardSet:
    names = [str(path) for name in expanded(data) for path in (_matching(name) if "*" in name else [Path(name)])]
    if not names or not all(name.lower().endswith(tuple(f".{kind}" for kind in KINDS)) for name in names):
        raise InputError(f"{data}: no shards: a pattern must name .tar or .parquet files")
    if missing := next((name for name in names if not os.path.isfile(name)), None):  # noqa: PTH113 (as above)
        raise InputError(f"{missing}: no such file: a shard is missing; get it, or leave it out")
    folder = Path(os.path.commonpath([str(Path(name).parent) for name in names]))
    found: dict[str, ShardFile] = {Path(name).relative_to(folder).as_posix(): LocalShard(Path(name)) for name in names}
    return shard_set(data, found, _reader(folder))


def _of_address(data: str) -> ShardSet:
    """The shards of an address: a file, a pattern with braces, or a folder."""
    kinds = tuple(f".{kind}" for kind in KINDS)
    if data.lower().endswith(kinds):
        found: dict[str, ShardFile] = {name.rpartition("/")[2]: named_file(name) for name in expanded(data)}
        return shard_set(data, found, lambda _: None)
    every = find_files(data)
    found = {name: file for name, file in every.items() if _is_shard_name(name) and name.lower().endswith(kinds)}
    if not found:
        raise InputError(f"{data}: has no .tar or .parquet files: give the address of shards, or of their folder")

    def text_of(name: str) -> str | None:
        if name not in every:
            return None
        with refusing(f"{data}/{name}"), every[name].open() as file:
            return file.read(1 << 20).decode("utf-8-sig")

    return shard_set(data, found, text_of)


def _is_shard_name(name: str) -> bool:
    """Whether a file of a folder is in it, in a folder of a split, or in the folder `data`."""
    folder, _, file = name.rpartition("/")
    return not file.startswith(".") and folder.lower() in ("", "data", *TRAIN_NAMES, *TEST_NAMES)


def _matching(pattern: str) -> list[Path]:
    path = Path(pattern)
    if "*" in str(path.parent):
        raise InputError(f"{pattern}: * is allowed only in the name of the file, not in a folder")
    return sorted(path.parent.glob(path.name))


def _of_folder(folder: Path) -> ShardSet | None:
    """The shards in a folder, in its folders of splits, or in its folder `data`; None if it has none, or others."""
    found: dict[str, ShardFile] = {}
    try:
        entries = [entry for entry in folder.iterdir() if not entry.name.startswith(".")]
        folders = [entry for entry in entries if entry.is_dir()]
        if any(entry.name.lower() not in (*TRAIN_NAMES, *TEST_NAMES, "data") for entry in folders):
            return None
        for place in (folder, *folders):
            for path in place.iterdir():
                if path.suffix.lower() in (".tar", ".parquet") and path.is_file():
                    found[path.relative_to(folder).as_posix()] = LocalShard(path)
                elif is_compressed(path.name) and path.is_file():
                    found.setdefault("", LocalShard(path))
    except OSError as error:
        raise refused(error.filename or folder, error) from error
    if (packed := found.pop("", None)) is not None and not found:
        raise InputError(f"{packed.name}: a compressed .tar file cannot be read by position: decompress it")
    return shard_set(str(folder), found, _reader(folder)) if found else None


def _reader(folder: Path) -> Callable[[str], str | None]:
    """A function that reads a small text file of the folder, or of the one above a split; None if there is none."""
    above = folder.name.lower() in (*TRAIN_NAMES, *TEST_NAMES)

    def text_of(name: str) -> str | None:
        for place in (folder, folder.parent) if above else (folder,):
            if (place / name).is_file():
                try:
                    return read_bytes(place / name, _LONGEST).decode("utf-8-sig")
                except UnicodeDecodeError as error:
                    raise InputError(f"{place / name}: cannot be read as text in UTF-8") from error
        return None

    return text_of


def _is_test(name: str) -> bool:
    """Whether the name of a shard, or of its folder, has a word of a split to test on."""
    words = set(re.split(r"[^a-z]+", name.lower().rpartition(".")[0]))
    return bool(words & set(TEST_NAMES)) and not words & set(TRAIN_NAMES)


def _check_complete(names: list[str], where: str) -> None:
    """Raise InputError if shards say of how many they are one, and one of those is missing."""
    sets: dict[tuple[str, str, int], set[int]] = {}
    for name in names:
        if match := _OF.fullmatch(name):
            sets.setdefault((match[1], match[3], len(match[2])), set()).add(int(match[2]))
    for (start, total, width), found in sets.items():
        if len(found) < int(total):
            first = next(number for number in range(int(total)) if number not in found)
            missing = f"{start}{first:0{width}d}-of-{total}"
            raise InputError(f"{where}: has {len(found)} of {int(total)} shards: {missing} is missing; get it")
