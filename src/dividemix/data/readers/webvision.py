"""WebVision 1.0, first 50 classes of the Google subset, tested on its own and on ILSVRC12's validation images."""

from collections import Counter
from pathlib import Path
from typing import NamedTuple

from dividemix.data.assemble import Listing
from dividemix.data.classes import natural_sorted
from dividemix.data.images import image_suffixes
from dividemix.data.listed import FilesUnder, find_listed
from dividemix.data.readers.file_lists import read_labelled, read_names
from dividemix.data.source import Skipped, Source
from dividemix.errors import InputError

NUM_CLASSES = 50  # "the first 50 classes of the Google image subset" (Section 4.1)
LISTS = ("info/synsets.txt", "info/train_filelist_google.txt", "info/val_filelist.txt")
IMAGE_SIZE = 256  # the side from which 227 pixels are cropped, as the released code did when the paper came out
_VAL_FOLDERS = ("val_images_256", "val")
_ILSVRC12 = "imagenet/val"
_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of pixels in [0, 1]: ImageNet's, from the released code
_EXPECTED = f"the folder that holds {', '.join(LISTS)}, google/ and {' or '.join(_VAL_FOLDERS)}/"


class WebVision(NamedTuple):
    """What the lists name; `ilsvrc12` is None where nothing of it is there, and ignores what is there only in part."""

    train: Listing
    test: Listing
    ilsvrc12: Listing | None


def list_webvision(root: Path) -> WebVision:
    """The images of the first 50 classes, or of all if synsets.txt has fewer; none is opened.

    Training images lie where their list says (google/q0001/NAME.jpg), validation images in val_images_256/ or val/,
    those of ILSVRC12 in imagenet/val/WNID/ or, as the released code has it, imagenet/val/NUMBER/.

    Raises:
        InputError: naming the list, for one that is missing or wrong.
    """
    if not root.is_dir():
        raise InputError(f"{root}: no such folder; --root should be {_EXPECTED}")
    synsets, classes = _synsets(root / "info" / "synsets.txt")
    val_folder = next((name for name in _VAL_FOLDERS if (root / name).is_dir()), _VAL_FOLDERS[0])
    return WebVision(
        train=_listing(root / "info" / "train_filelist_google.txt", root, classes),
        test=_listing(root / "info" / "val_filelist.txt", root / val_folder, classes),
        ilsvrc12=_ilsvrc12(root / _ILSVRC12, synsets, classes),
    )


def read_webvision(root: Path | None, image_size: int | None = None) -> Source:
    """WebVision in or at `root`, at 256 x 256 pixels unless `image_size` says otherwise.

    That files are there is checked, that they can be decoded is not (see `listed`). Without ILSVRC12's images those
    are not tested on, which is noted among what was left out; so is each of its classes that is absent.

    Raises:
        InputError: naming the list, for one that is missing or wrong, or if most images are missing.
    """
    if root is None:
        raise InputError(f"webvision needs --root DIR: {_EXPECTED}")
    found = list_webvision(root)
    side = image_size or IMAGE_SIZE
    train, test = find_listed(found.train, side), find_listed(found.test, side)
    other_tests = {}
    skipped = [*train.skipped, *(Skipped(one.path, f"test set: {one.reason}") for one in test.skipped)]
    if found.ilsvrc12 is None:
        skipped.append(Skipped(_ILSVRC12, "no images of ILSVRC12 here: not tested on them"))
    else:
        left_out = list(found.ilsvrc12.ignored)
        if len(found.ilsvrc12.files):
            ilsvrc12 = find_listed(found.ilsvrc12, side)
            other_tests["ilsvrc12"] = (ilsvrc12.images, ilsvrc12.labels)
            left_out += ilsvrc12.skipped
        skipped += [Skipped(one.path, f"ILSVRC12: {one.reason}") for one in left_out]
    assert found.train.classes is not None
    return Source(
        name="webvision",
        classes=tuple(found.train.classes),
        train_images=train.images,
        train_labels=train.labels,
        test_images=test.images,
        test_labels=test.labels,
        other_tests=other_tests,
        mean=_MEAN,
        std=_STD,
        paths=tuple(found.train.paths[row] for row in train.rows),
        rows=train.rows,
        num_given=len(found.train.paths),
        skipped=tuple(skipped),
    )


def _synsets(path: Path) -> tuple[list[str], tuple[str, ...]]:
    """WordNet's numbers of the classes, and their first names; with the number behind where classes share one."""
    lines = [line.partition(" ") for line in read_names(path)[:NUM_CLASSES]]
    if len(lines) < 2 or not all(wnid.startswith("n") and name.strip() for wnid, _, name in lines):
        raise InputError(f"{path}: a number of WordNet and a name are needed in each line, such as n01440764 tench")
    synsets = [wnid for wnid, _, _ in lines]
    names = [name.split(",")[0].strip() for _, _, name in lines]
    count = Counter(names)
    return synsets, tuple(
        name if count[name] == 1 else f"{name} ({wnid})" for wnid, name in zip(synsets, names, strict=True)
    )


def _listing(path: Path, folder: Path, classes: tuple[str, ...]) -> Listing:
    """The images of one list that are of the classes."""
    of_classes = [(name, label) for name, label in read_labelled(path) if label < len(classes)]
    names = [name for name, _ in of_classes]
    labels = [classes[label] for _, label in of_classes]
    return Listing(where=str(path), files=FilesUnder(folder, names), paths=names, labels=labels, classes=classes)


def _ilsvrc12(folder: Path, synsets: list[str], classes: tuple[str, ...]) -> Listing | None:
    """The images in a folder for each class; absent classes, and images outside of such folders, are ignored."""
    names, labels, absent = [], [], []
    for number, (wnid, name) in enumerate(zip(synsets, classes, strict=True)):
        subfolder = next((one for one in (wnid, str(number)) if (folder / one).is_dir()), wnid)
        files = _images_in(folder / subfolder)
        names += [f"{subfolder}/{file}" for file in files]
        labels += [name] * len(files)
        if not files:
            absent.append(Skipped(f"{_ILSVRC12}/{subfolder}", f"no images of the class {name}: not tested on it"))
    loose = _images_in(folder)
    if not names and not loose:
        return None
    ignored = absent if names else []  # of none at all, one line tells it
    if loose:
        reason = (
            f"{len(loose)} images are here, such as {loose[0]}, but not in a folder for each class: move each into the"
            f" folder of its class, {_ILSVRC12}/{synsets[0]}/ and so on (ILSVRC12's development kit tells the classes)"
        )
        ignored = [Skipped(_ILSVRC12, reason), *ignored]
    return Listing(
        where=str(folder),
        files=FilesUnder(folder, names),
        paths=[f"{_ILSVRC12}/{name}" for name in names],
        labels=labels,
        classes=classes,
        ignored=ignored,
    )


def _images_in(folder: Path) -> list[str]:
    """Names of the images right in a folder, in natural order; none if it is not there."""
    if not folder.is_dir():
        return []
    return natural_sorted([file.name for file in folder.iterdir() if file.suffix.lower() in image_suffixes()])
