"""Clothing1M from its official lists: noisy images to train on, clean ones to choose the epoch by and to test on."""

from pathlib import Path
from typing import NamedTuple

from dividemix.data.assemble import Listing
from dividemix.data.listed import FilesUnder, find_listed
from dividemix.data.readers.file_lists import read_labelled, read_names
from dividemix.data.source import Skipped, Source
from dividemix.errors import InputError

CLASSES = (
    *("T-Shirt", "Shirt", "Knitwear", "Chiffon", "Sweater", "Hoodie", "Windbreaker"),
    *("Jacket", "Downcoat", "Suit", "Shawl", "Dress", "Vest", "Underwear"),
)
LISTS = (
    *("noisy_train_key_list.txt", "clean_val_key_list.txt", "clean_test_key_list.txt"),
    *("noisy_label_kv.txt", "clean_label_kv.txt"),
)
IMAGE_SIZE = 256  # the side from which 224 pixels are cropped, as the released code does
# Of pixels in [0, 1], from the released code.
_MEAN, _STD = (0.6959, 0.6537, 0.6371), (0.3113, 0.3192, 0.3214)
_EXPECTED = f"the folder that holds {', '.join(LISTS)}, and the images below it"


class Clothing1M(NamedTuple):
    """What the lists name."""

    train: Listing
    val: Listing
    test: Listing


def list_clothing1m(root: Path) -> Clothing1M:
    """The images that the official lists name, with the numbers of their labels as names of classes; none is opened.

    The lists call them images/0/00/NAME.jpg; they lie there, or at 0/00/NAME.jpg if root has no folder `images`.

    Raises:
        InputError: naming the list, for one that is missing or wrong.
    """
    if not root.is_dir():
        raise InputError(f"{root}: no such folder; --root should be {_EXPECTED}")
    classes = _classes(root / "category_names_eng.txt")
    noisy = dict(read_labelled(root / "noisy_label_kv.txt", num_classes=len(classes)))
    clean = dict(read_labelled(root / "clean_label_kv.txt", num_classes=len(classes)))
    return Clothing1M(
        train=_listing(root, "noisy_train_key_list.txt", noisy, classes),
        val=_listing(root, "clean_val_key_list.txt", clean, classes),
        test=_listing(root, "clean_test_key_list.txt", clean, classes),
    )


def read_clothing1m(root: Path | None, image_size: int | None = None) -> Source:
    """Clothing1M (14 classes) in or at `root`, at 256 x 256 pixels unless `image_size` says otherwise.

    That files are there is checked, that they can be decoded is not (see `listed`).

    Raises:
        InputError: naming the list, for one that is missing or wrong, or if most images are missing.
    """
    if root is None:
        raise InputError(f"clothing1m needs --root DIR: {_EXPECTED}")
    found = list_clothing1m(root)
    train, val, test = (find_listed(listing, image_size or IMAGE_SIZE) for listing in found)
    assert found.train.classes is not None
    return Source(
        name="clothing1m",
        classes=tuple(found.train.classes),
        train_images=train.images,
        train_labels=train.labels,
        val_images=val.images,
        val_labels=val.labels,
        test_images=test.images,
        test_labels=test.labels,
        mean=_MEAN,
        std=_STD,
        paths=tuple(found.train.paths[row] for row in train.rows),
        rows=train.rows,
        num_given=len(found.train.paths),
        skipped=(
            *train.skipped,
            *(Skipped(one.path, f"validation set: {one.reason}") for one in val.skipped),
            *(Skipped(one.path, f"test set: {one.reason}") for one in test.skipped),
        ),
    )


def _classes(path: Path) -> tuple[str, ...]:
    """The names in the official file, where it is there and whole, else the same as they are known."""
    if not path.is_file():
        return CLASSES
    names = read_names(path)
    if len(names) != len(CLASSES) or len(set(names)) < len(names):
        raise InputError(f"{path}: {len(names)} lines: a name for each of the {len(CLASSES)} classes is needed")
    return tuple(names)


def _listing(root: Path, name: str, label_of: dict[str, int], classes: tuple[str, ...]) -> Listing:
    """The images of one key list."""
    keys = read_names(root / name)
    unlabelled = next((key for key in keys if key not in label_of), None)
    if unlabelled is not None:
        labels = "noisy_label_kv.txt" if name.startswith("noisy") else "clean_label_kv.txt"
        raise InputError(f"{root / name}: {unlabelled[:100]!r} has no label in {labels}: take the official lists")
    names = keys if (root / "images").is_dir() else [key.removeprefix("images/") for key in keys]
    return Listing(
        where=str(root / name),
        files=FilesUnder(root, names),
        paths=keys,
        labels=[classes[label_of[key]] for key in keys],
        classes=classes,
    )
