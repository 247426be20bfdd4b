"""What of a data set is in a folder: each official file there, missing or damaged, and how the folder should look."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Literal

import numpy as np

from dividemix.data.assemble import Listing
from dividemix.data.cifar_archives import ARCHIVES
from dividemix.data.images import ImageLike, UnreadableImage, read_image
from dividemix.data.listed import file_sizes
from dividemix.data.readers import clothing1m, webvision
from dividemix.data.readers.cifar import CIFARS, AbsentError, Cifar, Layout, open_files, read_batch
from dividemix.data.threads import map_each
from dividemix.errors import InputError

_NUM_TRAIN, _NUM_TEST = 50_000, 10_000  # images of either CIFAR
_NUM_NAMED = 3  # files that are named where many are missing

State = Literal["ok", "note", "missing", "damaged"]
Progress = Callable[[int, int], None]  # images decoded, images in all


@dataclass(frozen=True)
class Finding:
    """One thing looked at. With a note it can be used, but is not what the official data set has."""

    state: State
    what: str
    detail: str = ""


@dataclass(frozen=True)
class Checked:
    """What was found, and the layout that is expected, in words."""

    findings: tuple[Finding, ...]
    layout: str

    @property
    def usable(self) -> bool:
        """Whether nothing is missing or damaged."""
        return all(finding.state in ("ok", "note") for finding in self.findings)


def check(name: str, root: Path, *, decode: bool = False, progress: Progress = lambda done, total: None) -> Checked:
    """What of the data set (a key of `CHECKS`) is in or at `root`; `decode` opens every image file as well."""
    return Checked(tuple(CHECKS[name](root, decode, progress)), LAYOUTS[name])


# CIFAR


def _check_cifar(cifar: Cifar, root: Path) -> Iterator[Finding]:
    """A finding for each file, in the folder or the archive."""
    try:
        place, layout, files = open_files(cifar, root)
    except AbsentError:
        yield Finding("missing", str(root), f"no {cifar.name} in it" if root.exists() else "no such folder")
        return
    except InputError as error:  # it names the file
        yield Finding("damaged", str(error))
        return
    for names, num_images in ((layout.train, _NUM_TRAIN), (layout.test, _NUM_TEST)):
        for name in names:
            if name in files:
                yield _check_batch(cifar, layout, files[name], place / name, num_images // len(names))
            else:
                yield Finding("missing", str(place / name))


def _check_batch(cifar: Cifar, layout: Layout, content: bytes, where: Path, num_images: int) -> Finding:
    """The finding on one file, which should hold so many images."""
    archive = ARCHIVES[cifar.name]
    expected = archive.md5[where.name] if layout.folder == archive.folder else None
    if hashlib.md5(content, usedforsecurity=False).hexdigest() == expected:
        return Finding("ok", str(where), f"the official file, {num_images} images")
    try:
        images, _ = read_batch(layout, content, str(where), len(cifar.classes))
    except InputError as error:
        return Finding("damaged", str(where), str(error).removeprefix(f"{where}").lstrip(": "))
    if len(images) != num_images:
        return Finding("damaged", str(where), f"{len(images)} images instead of {num_images}: cut short, or a subset")
    if expected is None:  # no check sums of the binary files are published
        return Finding("ok", str(where), f"{num_images} images")
    return Finding("note", str(where), f"{num_images} images: readable, but not the official file")


def _cifar_layout(cifar: Cifar) -> str:
    """The forms that are read."""
    forms = [f"DIR/{layout.folder}/ with {', '.join(layout.files)}" for layout in cifar.layouts]
    forms += [f"DIR/{layout.archive}" for layout in cifar.layouts]
    return "\nor ".join(forms)


# Data sets with lists of image files


@dataclass(frozen=True)
class _Listed:
    """What is known of such a data set: its lists, who reads them, and how many images they should name, if known."""

    lists: tuple[str, ...]
    listings: Callable[[Path], dict[str, Listing | None]]
    num_images: dict[str, int]


def _check_listed(listed: _Listed, root: Path, decode: bool, progress: Progress) -> Iterator[Finding]:
    """A finding for each list and, if all are there, for the images of each split."""
    there = {name: (root / name).is_file() for name in listed.lists}
    yield from (Finding("ok" if found else "missing", str(root / name)) for name, found in there.items())
    if not all(there.values()):
        return
    try:
        listings = listed.listings(root)
    except InputError as error:
        yield Finding("damaged", str(root), str(error))
        return
    sizes = {split: file_sizes(listing.files) for split, listing in listings.items() if listing is not None}
    total = sum(int((of_split > 0).sum()) for of_split in sizes.values())
    numbers = count(1)
    for split, listing in listings.items():
        what = f"{split} images"
        if listing is None:
            yield Finding("note", what, "none here: nothing is tested on them")
            continue
        if listing.ignored:
            first = "; ".join(f"{one.path}: {one.reason}" for one in listing.ignored[:_NUM_NAMED])
            num_more = len(listing.ignored) - _NUM_NAMED
            yield Finding("missing", what, first + (f"; and {num_more} more" if num_more > 0 else ""))
        if not len(listing.files):
            continue
        missing = [path for path, size in zip(listing.paths, sizes[split], strict=True) if size < 0]
        damaged = [f"{path} (empty)" for path, size in zip(listing.paths, sizes[split], strict=True) if size == 0]
        rows = np.flatnonzero(sizes[split] > 0).tolist() if decode else []
        for row, reason in zip(rows, map_each(partial(_unreadable, listing.files), rows), strict=True):
            damaged += [f"{listing.paths[row]} ({reason})"] if reason else []
            progress(next(numbers), total)
        num_images = len(listing.files)
        official = listed.num_images.get(split, num_images)
        if missing:
            yield Finding("missing", what, _some(missing, num_images))
        if damaged:
            yield Finding("damaged", what, _some(damaged, num_images))
        if not missing and not damaged:
            more = "" if num_images == official else f"; the official data set has {official}"
            yield Finding(
                "note" if more else "ok", what, f"{num_images}, all {'readable' if decode else 'there'}{more}"
            )


def _unreadable(files: Sequence[ImageLike], row: int) -> str | None:
    """Why an image cannot be decoded; None if it can."""
    try:
        read_image(files[row], 32, 32, 3)
    except UnreadableImage as error:
        return str(error)
    return None


def _some(paths: Sequence[str], num_images: int) -> str:
    """How many, and which are the first."""
    named = ", ".join(paths[:_NUM_NAMED]) + (", ..." if len(paths) > _NUM_NAMED else "")
    return f"{len(paths)} of {num_images}: {named}"


# How many images the official lists name; WebVision's, those of the 50 classes used here.
_CLOTHING1M = _Listed(
    lists=clothing1m.LISTS,
    listings=lambda root: clothing1m.list_clothing1m(root)._asdict(),
    num_images={"train": 1_000_000, "val": 14_313, "test": 10_526},
)
_WEBVISION = _Listed(
    lists=webvision.LISTS,
    listings=lambda root: webvision.list_webvision(root)._asdict(),
    num_images={"test": 2_500, "ilsvrc12": 2_500},
)

CHECKS: dict[str, Callable[[Path, bool, Progress], Iterator[Finding]]] = {
    "cifar10": lambda root, decode, progress: _check_cifar(CIFARS["cifar10"], root),
    "cifar100": lambda root, decode, progress: _check_cifar(CIFARS["cifar100"], root),
    "clothing1m": partial(_check_listed, _CLOTHING1M),
    "webvision": partial(_check_listed, _WEBVISION),
}
LAYOUTS = {
    **{name: _cifar_layout(cifar) for name, cifar in CIFARS.items()},
    "clothing1m": """\
DIR/noisy_train_key_list.txt, clean_val_key_list.txt, clean_test_key_list.txt: names of images
DIR/noisy_label_kv.txt, clean_label_kv.txt: names and numbers of their classes
DIR/images/0/00/NAME.jpg and so on, as the lists name them; or without the folder images""",
    "webvision": """\
DIR/info/synsets.txt, train_filelist_google.txt, val_filelist.txt
DIR/google/q0001/NAME.jpg and so on, as the list names them: training images of the first 50 classes
DIR/val_images_256/NAME.jpg, or val/: test images
DIR/imagenet/val/WNID/NAME.JPEG, or a number from 0 to 49 for WNID: ILSVRC12's validation images, to test on as well""",
}
