"""Write the cleaned data as a folder with one subfolder per class: hard links where possible, copies elsewhere."""

import os
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from dividemix.data.listing import Listing
from dividemix.data.readers.folder import list_folder
from dividemix.data.readers.table import list_table
from dividemix.errors import InputError
from dividemix.relabel.corrections import Correction, by_path
from dividemix.relabel.relabel import kind_of
from dividemix.runs.creation import create_directory

_LONGEST_NAME = 255  # bytes, on all common file systems


def write_cleaned_folder(
    data: Path,
    decided: Sequence[Correction],
    out: Path,
    *,
    path_column: str = "path",
    label_column: str = "label",
    image_root: Path | None = None,
) -> int:
    """Write the images of a folder or a text table below `out`, each in the folder of its corrected label.

    The paths of a table start from `image_root`, or from its folder. Deleted samples are left out. If the data has
    test images, `out` gets the folders train and test. Returns the number of images. The folder appears only when it is
    complete. Raises InputError if `out` exists and is not empty, if it is inside the data or around it, or if a label
    cannot be the name of a folder.
    """
    kind = kind_of(data)
    if kind not in ("folder", ".csv", ".tsv"):
        raise InputError(f"{data}: has no image files to copy: write a {kind} file instead, with out")
    own, home = out.resolve(), data.resolve()
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out}: exists and is not empty: choose another folder for the cleaned images")
    if kind == "folder" and (own.is_relative_to(home) or home.is_relative_to(own)):
        raise InputError(f"{out}: must not be inside of {data}, nor contain it: choose another folder")
    if kind == "folder":
        train, test = list_folder(data)
    else:
        train, test = list_table(data, path_column=path_column, label_column=label_column, image_root=image_root)
    rows: dict[int, tuple[str, str | None]] = dict(enumerate(zip(train.paths, train.labels, strict=True)))
    new = by_path(decided, rows, data)
    labels = {row: new[row].new_label if row in new else label for row, (_, label) in rows.items()}
    wanted: dict[Path, Path] = {}  # place below the folder -> the image
    kept = [row for row in rows if row not in new or not new[row].deletes]
    _add(wanted, "train" if test else "", {row: labels[row] or "" for row in kept}, train, data)
    if test:
        _add(wanted, "test", dict(enumerate(test.labels)), test, data)
    create_directory(out, lambda folder: _fill(folder, wanted))
    return len(wanted)


def _add(wanted: dict[Path, Path], split: str, labels: Mapping[int, str], listing: Listing, data: Path) -> None:
    """Note the place of each image with a label; if the place is taken, under another name: photo-2.jpg."""
    for row, label in labels.items():
        _check_name(label, data)
        file = listing.files[row]
        assert isinstance(file, Path)
        # Below a folder, the parts are the split, if there is one, the class, and the rest, which stays.
        rest = file.relative_to(data).parts[2 if split else 1 :] if data.is_dir() else (file.name,)
        place, number = Path(split, label, *rest), 1
        while place in wanted:
            number += 1
            place = Path(split, label, *rest).with_name(f"{file.stem}-{number}{file.suffix}")
        wanted[place] = file


def _check_name(label: str, data: Path) -> None:
    """Raise InputError unless the label can be the name of a folder that a reader takes for a class."""
    is_bad = not label or label.startswith(".") or any(character in label for character in "/\\\0")
    if is_bad or len(os.fsencode(label)) > _LONGEST_NAME:
        raise InputError(
            f"{data}: label {label[:100]!r} cannot be the name of a folder: write a table instead, with out"
        )


def _fill(folder: Path, wanted: dict[Path, Path]) -> None:
    """Link or copy the images, and compare what a reader finds with what was wanted."""
    for place, file in wanted.items():
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        source = file.resolve()  # the image, not a link to it
        try:
            os.link(source, target)
        except FileExistsError:  # two names that this file system takes for one
            raise
        except OSError:  # another file system, or one without links
            shutil.copy2(source, target)
    found = [listing for listing in list_folder(folder) if listing is not None]
    labels = Counter(label for listing in found for label in listing.labels)
    depth = 1 if len(found) > 1 else 0
    if labels != Counter(place.parts[depth] for place in wanted):
        raise InputError(
            f"{folder}: dividemix train would read other classes from this folder: write a table instead, with out"
        )
