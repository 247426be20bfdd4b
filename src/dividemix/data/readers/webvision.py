"""WebVision 1.0, first 50 classes of the Google subset; test sets are its own and ILSVRC12's validation images."""

import dataclasses
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from dividemix.data.builtin import BUILT_IN
from dividemix.data.classes import natural_sorted
from dividemix.data.images import image_suffixes
from dividemix.data.listed import files_under, listed_source
from dividemix.data.listing import Listing
from dividemix.data.readers.file_lists import read_labelled, read_names
from dividemix.data.source import Skipped, Source
from dividemix.errors import InputError

NUM_CLASSES = 50  # "the first 50 classes of the Google image subset" (Section 4.1)
IMAGE_SIZE = 256  # 227 pixels are cropped from it, as in the released code when the paper came out
_VAL_FOLDERS = ("val_images_256", "val")
_ILSVRC12 = "imagenet/val"
_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # ImageNet's, for pixels in [0, 1], from the released code
_EXPECTED = f"the folder with {', '.join(BUILT_IN['webvision'].lists)}, google/ and {' or '.join(_VAL_FOLDERS)}/"


class WebVision(NamedTuple):
    """The images that the lists name; `ilsvrc12` is None if there are no images of it, and reports absent classes."""

    train: Listing
    test: Listing
    ilsvrc12: Listing | None


def list_webvision(root: Path) -> WebVision:
    """The images of the first 50 classes, or of all if synsets.txt has fewer; no image is opened.

    Training images are where their list says (google/q0001/NAME.jpg), validation images in val_images_256/ or val/,
    those of ILSVRC12 in imagenet/val/WNID/ or, as in the released code, imagenet/val/NUMBER/. Raises InputError, naming
    the list, if one is missing or wrong.
    """
    if not root.is_dir():
        raise InputError(f"{root}: no such folder; root must be {_EXPECTED}")
    synsets, classes = _synsets(root / "info" / "synsets.txt")
    val_folder = next((name for name in _VAL_FOLDERS if (root / name).is_dir()), _VAL_FOLDERS[0])
    return WebVision(
        train=_listing(root / "info" / "train_filelist_google.txt", root, classes),
        test=_listing(root / "info" / "val_filelist.txt", root / val_folder, classes),
        ilsvrc12=_ilsvrc12(root / _ILSVRC12, synsets, classes),
    )


def read_webvision(root: Path | None, image_size: int | None = None) -> Source:
    """WebVision in `root`, at `image_size` pixels, 256 if None.

    Without ILSVRC12's images there is no second test set, which is reported among the skipped files; so is each of its
    classes that is absent. Raises InputError, naming the list, if one is missing or wrong, or most images are missing
    (see `listed`).
    """
    if root is None:
        raise InputError(f"webvision needs root: {_EXPECTED}")
    found = list_webvision(root)
    splits = {split: listing for split, listing in found._asdict().items() if listing is not None}
    source = listed_source("webvision", splits, image_size or IMAGE_SIZE, mean=_MEAN, std=_STD)
    absent = [] if found.ilsvrc12 else [Skipped(_ILSVRC12, "no images of ILSVRC12: not tested")]
    return dataclasses.replace(source, skipped=(*source.skipped, *absent))


def _synsets(path: Path) -> tuple[list[str], tuple[str, ...]]:
    """The WordNet IDs of the classes, and their first names; shared names are followed by their ID."""
    lines = [line.partition(" ") for line in read_names(path)[:NUM_CLASSES]]
    if len(lines) < 2 or not all(wnid.startswith("n") and name.strip() for wnid, _, name in lines):
        raise InputError(f"{path}: each line must be a WordNet ID and a name, such as n01440764 tench")
    synsets = [wnid for wnid, _, _ in lines]
    names = [name.split(",")[0].strip() for _, _, name in lines]
    count = Counter(names)
    pairs = zip(synsets, names, strict=True)
    return synsets, tuple(name if count[name] == 1 else f"{name} ({wnid})" for wnid, name in pairs)


def _listing(path: Path, folder: Path, classes: tuple[str, ...]) -> Listing:
    of_classes = [(name, label) for name, label in read_labelled(path) if label < len(classes)]
    names = [name for name, _ in of_classes]
    labels = [classes[label] for _, label in of_classes]
    return Listing(where=str(path), files=files_under(folder, names), paths=names, labels=labels, classes=classes)


def _ilsvrc12(folder: Path, synsets: list[str], classes: tuple[str, ...]) -> Listing | None:
    """The images in the class folders; absent classes, and images outside of class folders, are reported as ignored."""
    names, labels, absent = [], [], []
    for number, (wnid, name) in enumerate(zip(synsets, classes, strict=True)):
        subfolder = next((one for one in (wnid, str(number)) if (folder / one).is_dir()), wnid)
        files = _images_in(folder / subfolder)
        names += [f"{subfolder}/{file}" for file in files]
        labels += [name] * len(files)
        if not files:
            absent.append(Skipped(f"{_ILSVRC12}/{subfolder}", f"no images of the class {name}: not tested"))
    loose = _images_in(folder)
    if not names and not loose:
        return None
    ignored = absent if names else []  # if there are no images at all, one line reports it
    if loose:
        reason = (
            f"{len(loose)} images, such as {loose[0]}, are not in class folders: move each into the folder of its"
            f" class, {_ILSVRC12}/{synsets[0]}/ and so on (ILSVRC12's development kit lists the classes)"
        )
        ignored = [Skipped(_ILSVRC12, reason), *ignored]
    return Listing(
        where=str(folder),
        files=files_under(folder, names),
        paths=[f"{_ILSVRC12}/{name}" for name in names],
        labels=labels,
        classes=classes,
        ignored=ignored,
    )


def _images_in(folder: Path) -> list[str]:
    """Names of the images directly in a folder, in natural order; empty if there is no such folder."""
    if not folder.is_dir():
        return []
    return natural_sorted([file.name for file in folder.iterdir() if file.suffix.lower() in image_suffixes()])
