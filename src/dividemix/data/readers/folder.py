"""A folder with one subfolder per class, or with such folders for training and testing in it."""

import os
from pathlib import Path

from dividemix.data.assemble import Listing
from dividemix.data.classes import natural_key, natural_sorted, printable
from dividemix.data.images import ImageLike, image_suffixes
from dividemix.data.inside import Inside
from dividemix.data.readers.rows import TEST_NAMES, TRAIN_NAMES
from dividemix.data.source import Skipped
from dividemix.errors import InputError


def list_folder(folder: Path) -> tuple[Listing, Listing | None]:
    """The images to train on and those to test on, if there are any; a class is a subfolder with all that is in it.

    If the subfolders with images are one for training (train) and others for testing (test, val), with folders in
    each, the classes are in those. Hidden files are passed over; files that are no images, links to folders and links
    that lead out of the folder are listed as ignored.

    Raises:
        InputError: if there are no class folders, or it is unclear which folders are the classes.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder")
    try:
        names = _subfolders(folder)
        splits = {name for name in names if name.lower() in TRAIN_NAMES + TEST_NAMES and _subfolders(folder / name)}
    except OSError as error:
        raise InputError(f"{folder}: cannot be read: {error.strerror or error}") from error
    train = {name for name in splits if name.lower() in TRAIN_NAMES}
    if len(train) == 1 and any(name.lower() in TEST_NAMES for name in names):
        if others := [name for name in names if name not in splits and _holds_images(folder / name)]:
            (split,) = train
            raise InputError(
                f"{folder}: {printable(split)} holds class folders, {printable(others[0])} beside it is no such split: "
                f"to train on {printable(split)} alone, name {folder / split}, and images to test on by --test"
            )
        return _listing(folder, train), _listing(folder, splits - train)
    if not names:
        raise InputError(
            f"{folder}: no class folders in it: put the images of each class in a folder of its own, "
            "or list them in a .csv file with columns path and label"
        )
    return _listing(folder, {""}), None


def _listing(folder: Path, parts: set[str]) -> Listing:
    """The images in the class folders of all parts of the folder; the part "" is the folder itself."""
    inside, suffixes = Inside(folder), image_suffixes()
    found: list[tuple[str, str]] = []  # path below the folder, class
    ignored: list[Skipped] = []
    for part in sorted(parts):
        for name in os.listdir(folder / part):  # noqa: PTH208
            path = folder / part / name
            if not path.is_dir() and not name.startswith("."):
                ignored.append(Skipped(printable(str(path.relative_to(folder))), "beside the class folders"))
        for name in _subfolders(folder / part):
            number_before = len(found)
            for path, reason in _files(folder / part / name, inside, suffixes):
                shown = path.relative_to(folder).as_posix()
                if reason:
                    ignored.append(Skipped(printable(shown), reason))
                else:
                    found.append((shown, printable(name)))
            if len(found) == number_before:
                shown = printable((Path(part) / name).as_posix())
                ignored.append(Skipped(shown, "class folder without images: left out"))
    found.sort(key=lambda entry: natural_key(entry[0]))
    files: list[ImageLike] = [folder / path for path, _ in found]
    return Listing(
        where=str(folder),
        files=files,
        paths=[printable(path) for path, _ in found],
        labels=[label for _, label in found],
        ignored=sorted(ignored, key=lambda one: natural_key(one.path)),
    )


def _files(folder: Path, inside: Inside, suffixes: frozenset[str]) -> list[tuple[Path, str]]:
    """All files below a class folder, each with the reason to ignore it or with none."""
    found: list[tuple[Path, str]] = []

    def unreadable(error: OSError) -> None:
        found.append((Path(error.filename), f"folder cannot be read: {error.strerror}"))

    if folder.is_symlink():
        return [(folder, "link to a folder: not followed")]
    for top, folders, names in os.walk(folder, onerror=unreadable):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in folders:
            path = Path(top, name)
            if path.is_symlink():
                found.append((path, "link to a folder: not followed"))
            elif path.suffix.lower() in suffixes:
                found.append((path, "a folder, not an image"))
        for name in names:
            path = Path(top, name)
            if name.startswith("."):
                continue
            if path.suffix.lower() not in suffixes:
                found.append((path, f"its name ends in {path.suffix!r}, which is no image's ending"))
            elif path not in inside:
                found.append((path, "link that leads out of the folder"))
            else:
                found.append((path, ""))
    return found


def _holds_images(folder: Path) -> bool:
    """Whether there is a file that is called like an image below the folder."""
    suffixes = image_suffixes()
    return any(Path(name).suffix.lower() in suffixes for _, _, names in os.walk(folder) for name in names)


def _subfolders(folder: Path) -> list[str]:
    """Names of the folders in a folder, hidden ones left out, in natural order."""
    return natural_sorted(path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
