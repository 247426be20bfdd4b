"""Clothing1M from its official lists: noisy images to train on, clean ones to select the epoch and to test on."""

from pathlib import Path
from typing import NamedTuple

from dividemix.data.builtin import BUILT_IN
from dividemix.data.listed import files_under, listed_source
from dividemix.data.listing import Listing
from dividemix.data.readers.file_lists import read_labelled, read_names
from dividemix.data.source import Source
from dividemix.errors import InputError

CLASSES = (
    *("T-Shirt", "Shirt", "Knitwear", "Chiffon", "Sweater", "Hoodie", "Windbreaker"),
    *("Jacket", "Downcoat", "Suit", "Shawl", "Dress", "Vest", "Underwear"),
)
IMAGE_SIZE = 256  # the side from which 224 pixels are cropped, as the released code does
_MEAN, _STD = (0.6959, 0.6537, 0.6371), (0.3113, 0.3192, 0.3214)  # for pixels in [0, 1], from the released code
_EXPECTED = f"the folder with {', '.join(BUILT_IN['clothing1m'].lists)}, and the images below it"


class Clothing1M(NamedTuple):
    """The images that the lists name."""

    train: Listing
    val: Listing
    test: Listing


def list_clothing1m(root: Path) -> Clothing1M:
    """The images that the official lists name, with the class names of their labels; no image is opened.

    The lists name them images/0/00/NAME.jpg. If root has no folder `images`, they are expected at 0/00/NAME.jpg.
    Raises InputError, naming the list, if one is missing or wrong.
    """
    if not root.is_dir():
        raise InputError(f"{root}: no such folder; root must be {_EXPECTED}")
    classes = _classes(root / "category_names_eng.txt")
    noisy = dict(read_labelled(root / "noisy_label_kv.txt", num_classes=len(classes)))
    clean = dict(read_labelled(root / "clean_label_kv.txt", num_classes=len(classes)))
    return Clothing1M(
        train=_listing(root, "noisy_train_key_list.txt", noisy, classes),
        val=_listing(root, "clean_val_key_list.txt", clean, classes),
        test=_listing(root, "clean_test_key_list.txt", clean, classes),
    )


def read_clothing1m(root: Path | None, image_size: int | None = None) -> Source:
    """Clothing1M (14 classes) in `root`, at `image_size` pixels, 256 if None; InputError as `list_clothing1m`."""
    if root is None:
        raise InputError(f"clothing1m needs root: {_EXPECTED}")
    splits = list_clothing1m(root)._asdict()
    return listed_source("clothing1m", splits, image_size or IMAGE_SIZE, mean=_MEAN, std=_STD)


def _classes(path: Path) -> tuple[str, ...]:
    """The class names in the official file; `CLASSES` if there is no such file."""
    if not path.is_file():
        return CLASSES
    names = read_names(path)
    if len(names) != len(CLASSES) or len(set(names)) < len(names):
        raise InputError(f"{path}: must have {len(CLASSES)} different names, one for each class; has {len(names)}")
    return tuple(names)


def _listing(root: Path, name: str, label_of: dict[str, int], classes: tuple[str, ...]) -> Listing:
    keys = read_names(root / name)
    unlabelled = next((key for key in keys if key not in label_of), None)
    if unlabelled is not None:
        other = "noisy_label_kv.txt" if name.startswith("noisy") else "clean_label_kv.txt"
        raise InputError(f"{root / name}: {unlabelled[:100]!r} has no label in {other}: use the official lists")
    names = keys if (root / "images").is_dir() else [key.removeprefix("images/") for key in keys]
    files, labels = files_under(root, names), [classes[label_of[key]] for key in keys]
    return Listing(where=str(root / name), files=files, paths=keys, labels=labels, classes=classes)
