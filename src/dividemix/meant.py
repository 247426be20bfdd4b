"""What a user may have meant: the known word, or the existing path, that is most like the one that was given."""

import difflib
import os
from collections.abc import Iterable
from itertools import islice

_MOST = 10_000  # names of a folder that are looked at

# What other programs call a setting.
_SYNONYMS = {
    **{"learning_rate": "lr", "gpu": "device", "cuda": "device", "output": "out", "output_dir": "out", "model": "net"},
    **{"num_epochs": "epochs", "target_column": "target", "text": "text_column", "val": "test", "valid": "test"},
}


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is most like this one, which may be mistyped; None if none is."""
    known = list(known)
    if _SYNONYMS.get(word) in known:
        return _SYNONYMS[word]
    by_lower = {one.lower(): one for one in known}
    near = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.65)
    return by_lower[near[0]] if near else None


def or_meant(word: str, known: Iterable[str], otherwise: str) -> str:
    """The question whether the user meant the known word that is most like this one; `otherwise` if none is."""
    near = nearest(word, known)
    return otherwise if near is None else f"did you mean {near}?"


def nearest_path(path: str | os.PathLike[str]) -> str | None:
    """The path in the same folder whose name is most like that of this one; None if none is."""
    if os.path.lexists(path):
        return None
    folder, name = os.path.split(os.path.normpath(path))
    try:
        with os.scandir(folder or ".") as found:
            near = nearest(name, [one.name for one in islice(found, _MOST) if one.name.isprintable()])
    except (OSError, ValueError):  # no such folder, or a name that cannot be one
        return None
    return None if near is None else os.path.join(folder, near)  # noqa: PTH118 (the path is shown as it was given)


def or_meant_path(path: str | os.PathLike[str], otherwise: str) -> str:
    """The question whether the user meant the path with the most similar name; `otherwise` if there is none."""
    near = nearest_path(path)
    return otherwise if near is None else f"did you mean {near}?"
