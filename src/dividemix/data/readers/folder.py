"""Read a folder with one subfolder per class, or with such folders for training and for testing."""

import dataclasses
from collections.abc import Hashable
from pathlib import Path

from dividemix.data.classes import natural_key, natural_sorted, printable
from dividemix.data.images import ImageLike, image_suffixes
from dividemix.data.listing import Listing
from dividemix.data.readers.levels import level_notes, meant_folder
from dividemix.data.readers.rows import TEST_NAMES, TRAIN_NAMES
from dividemix.data.same_file import identity
from dividemix.data.source import Skipped
from dividemix.data.walk import walk
from dividemix.errors import InputError, counted, refused


def list_folder(folder: Path) -> tuple[Listing, Listing | None]:
    """The images to train on, and those to test on if there are any; all images below a subfolder have its class.

    If the folder has one subfolder for training (train) and others for testing (test, val), and these have subfolders,
    those are the classes. Hidden files are skipped. Files that are not images are reported as ignored. Links are
    followed; a file that has several names in one class is one sample. Raises InputError if a folder cannot be read,
    there are no class folders, or it is unclear which folders are the classes.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder")
    names, others = _entries(folder)
    splits = {name for name in names if name.lower() in TRAIN_NAMES + TEST_NAMES and _entries(folder / name)[0]}
    known: dict[Hashable, str] = {}
    train = {name for name in splits if name.lower() in TRAIN_NAMES}
    if len(train) == 1 and any(name.lower() in TEST_NAMES for name in names):
        if others := [name for name in names if name not in splits and _holds_images(folder / name)]:
            (split,) = train
            raise InputError(
                f"{folder}: {printable(split)} has class folders, but {printable(others[0])} is neither for training"
                f" nor for testing: to train on {printable(split)} alone, give {folder / split} as data, and test"
                " images as test"
            )
        listing, test = (_listing(folder, parts, known) for parts in (train, splits - train))
        names_of_test = printable(" and ".join(natural_sorted(splits - train)))
        amounts = f"({len(listing.files):,} images), {names_of_test} to test on ({len(test.files):,} images)"
        listing = dataclasses.replace(listing, notes=(f"{printable(min(train))} is to train on {amounts}",))
        return listing, test
    if not names:
        raise InputError(
            f"{folder}: no class folders in it, {_directly(others)}: put the images of each class in a separate folder,"
            " or list them in a .csv file with columns path and label"
        )
    listing = _listing(folder, {""}, known)
    if meant := meant_folder(listing.paths):
        raise InputError(
            f"{folder}: all its images are in one folder, {meant}, whose subfolders seem to be the classes: "
            f"give {folder / meant} as data"
        )
    return dataclasses.replace(listing, notes=level_notes(folder, listing.paths)), None


def _listing(folder: Path, parts: set[str], known: dict[Hashable, str]) -> Listing:
    """The images in the class folders of all parts of the folder; the part "" is the folder itself.

    `known` has the name of each file that is listed with a class already, and gets those of this listing.
    """
    suffixes = image_suffixes()
    found: list[tuple[str, str]] = []  # path below the folder, class
    ignored: list[Skipped] = []
    for part in sorted(parts):
        classes, others = _entries(folder / part)
        ignored += [Skipped(printable(str(Path(part, name))), "not in a class folder") for name in others]
        for name in classes:
            number_before = len(found)
            for path, reason in walk(folder / part / name, folder):
                shown = path.relative_to(folder).as_posix()
                if not reason and path.suffix.lower() not in suffixes:
                    reason = f"extension {path.suffix!r} is not that of an image"
                first = known.setdefault((identity(path), name), printable(shown)) if not reason else ""
                if reason or first != printable(shown):
                    ignored.append(Skipped(printable(shown), reason or f"the same file as {first}"))
                else:
                    found.append((shown, printable(name)))
            if len(found) == number_before:
                empty = printable((Path(part) / name).as_posix())
                ignored.append(Skipped(empty, "folder without images: it is no class"))
    found.sort(key=lambda entry: natural_key(entry[0]))
    files: list[ImageLike] = [folder / path for path, _ in found]
    return Listing(
        where=str(folder),
        files=files,
        paths=[printable(path) for path, _ in found],
        labels=[label for _, label in found],
        ignored=sorted(ignored, key=lambda one: natural_key(one.path)),
    )


def _directly(names: list[str]) -> str:
    """What else is in a folder without subfolders."""
    num_images = sum(Path(name).suffix.lower() in image_suffixes() for name in names)
    if num_images:
        return f"but {counted(num_images, 'image')}, and if it is itself the folder of a class, give the one above it"
    return f"but {counted(len(names), 'file')} that are not images" if names else "it is empty"


def _holds_images(folder: Path) -> bool:
    """Whether a file below the folder has the extension of an image."""
    suffixes = image_suffixes()
    return any(not reason and path.suffix.lower() in suffixes for path, reason in walk(folder, folder.parent))


def _entries(folder: Path) -> tuple[list[str], list[str]]:
    """Names of the subfolders, in natural order, and of what else is in the folder, without hidden ones."""
    try:
        paths = [path for path in folder.iterdir() if not path.name.startswith(".")]
        folders = {path.name for path in paths if path.is_dir()}
    except OSError as error:
        raise refused(error.filename or folder, error) from error
    return natural_sorted(folders), [path.name for path in paths if path.name not in folders]
