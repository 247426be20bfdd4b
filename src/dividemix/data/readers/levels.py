"""Notice a folder that is one level too high: its subfolders are not the classes, theirs are.

Only the paths of the images are looked at: "photos/cat/1.png", relative to the folder.
"""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

_MOST = 0.8  # of all images: a class with so many of them may contain the real classes


def meant_folder(paths: Sequence[str]) -> str:
    """The folder below which all images are in at least two subfolders; empty if that is the folder itself."""
    folders = {os.path.dirname(path) for path in paths}  # noqa: PTH120
    common = os.path.commonpath(folders) if folders else ""
    return "" if common in folders else common


def level_notes(folder: Path, paths: Sequence[str]) -> tuple[str, ...]:
    """A line for the user if the subfolders of the class folders could be the real classes; else nothing."""
    counts = Counter(path.split("/")[0] for path in paths)
    below: dict[str, set[str]] = {name: set() for name in counts}  # class folder -> its subfolders
    for path in paths:
        name, _, rest = path.partition("/")
        below[name].add(rest.partition("/")[0] if "/" in rest else "")
    nested = {name: subfolders for name, subfolders in below.items() if len(subfolders) > 1 and "" not in subfolders}
    largest, number = max(counts.items(), key=lambda item: item[1], default=("", 0))
    if len(nested) == len(below) > 1 and len({frozenset(subfolders) for subfolders in nested.values()}) == 1:
        names = _shown(nested[largest])
        return (f"all classes have the same subfolders, {names}: if those are the classes, list the images in a table",)
    if largest in nested and number >= _MOST * len(paths):
        share = f"{number:,} of {len(paths):,} images are in {largest}, in its subfolders {_shown(nested[largest])}"
        return (f"{share}: if those are the classes, give {folder / largest} as data",)
    return ()


def _shown(names: set[str]) -> str:
    listed = sorted(names)
    return ", ".join(listed[:3]) + (", ..." if len(listed) > 3 else "")
