"""The lists that official data sets come with: a file's name in each line, alone or with the number of its class."""

from pathlib import Path

from dividemix.errors import InputError


def read_names(path: Path) -> list[str]:
    """The lines of a list that are not empty, none of which may lead out of the data set.

    Raises:
        InputError: naming the file, and the line, for a list that is missing or holds something else.
    """
    names = [line.strip() for line in _lines(path)]
    for number, name in enumerate(names, start=1):
        _check_inside(name, path, number)
    return [name for name in names if name]


def read_labelled(path: Path, *, num_classes: int | None = None) -> list[tuple[str, int]]:
    """Names with the numbers of their classes, which end the line after a blank; names may hold commas and blanks.

    Raises:
        InputError: as `read_names`; with `num_classes`, also for a number that is none of theirs.
    """
    found = []
    for number, line in enumerate(_lines(path), start=1):
        if not line.strip():
            continue
        name, _, label = line.strip().rpartition(" ")
        if not name or not (label.isascii() and label.isdigit()):
            raise InputError(f"{path}: line {number}: a name, a blank and the number of a class are needed")
        if num_classes is not None and int(label) >= num_classes:
            raise InputError(f"{path}: line {number}: class {int(label)}: classes go from 0 to {num_classes - 1}")
        name = name.strip()
        _check_inside(name, path, number)
        found.append((name, int(label)))
    return found


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise InputError(
            f"{path}: no such file: it is one of the data set's official lists; dividemix data check says what else is"
            " missing"
        ) from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not text in UTF-8: take the official list") from error
    if not text.strip():
        raise InputError(f"{path}: empty: take the official list")
    return text.split("\n")


def _check_inside(name: str, path: Path, number: int) -> None:
    if name.startswith("/") or ".." in name.split("/") or "\0" in name:
        raise InputError(f"{path}: line {number}: {name[:100]!r} leads out of the data set: take the official list")
