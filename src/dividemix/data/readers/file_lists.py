"""The lists in official data sets: each line is the name of a file, with or without its class number."""

from pathlib import Path

from dividemix.errors import InputError


def read_names(path: Path) -> list[str]:
    """The lines of a list, without empty ones; InputError if it is missing, or a name leads out of the data set."""
    for number, name in (lines := _lines(path)):
        _check_inside(name, path, number)
    return [name for _, name in lines]


def read_labelled(path: Path, *, num_classes: int | None = None) -> list[tuple[str, int]]:
    """Names, which may contain spaces, with their class numbers, which come last; InputError as `read_names`."""
    found = []
    for number, line in _lines(path):
        name, _, label = line.rpartition(" ")
        if not name or not (label.isascii() and label.isdigit()):
            raise InputError(f"{path}: line {number}: must be a name, a space and a class number")
        if num_classes is not None and int(label) >= num_classes:
            raise InputError(f"{path}: line {number}: class {int(label)}: must be from 0 to {num_classes - 1}")
        _check_inside(name.strip(), path, number)
        found.append((name.strip(), int(label)))
    return found


def _lines(path: Path) -> list[tuple[int, str]]:
    """The lines that are not empty, with their numbers."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        remedy = "it is one of the data set's official lists; dividemix data check reports what is missing"
        raise InputError(f"{path}: no such file: {remedy}") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not text in UTF-8: use the official list") from error
    if not text.strip():
        raise InputError(f"{path}: empty: use the official list")
    return [(number, line.strip()) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]


def _check_inside(name: str, path: Path, number: int) -> None:
    if name.startswith("/") or ".." in name.split("/") or "\0" in name:
        raise InputError(f"{path}: line {number}: {name[:100]!r} leads out of the data set: use the official list")
