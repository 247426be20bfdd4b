"""From a list of image files with labels to a source: one size for all, the unreadable left out, classes in order.

Shapes: N samples, H x W pixels, K channels (1 or 3), C classes.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dividemix.data.classes import natural_sorted, numbered
from dividemix.data.image_files import ImageFiles, image_digest
from dividemix.data.images import ImageLike, UnreadableImage, probe, read_image
from dividemix.data.pixel_statistics import Statistics, level_counts, mean_and_std
from dividemix.data.source import Images, Skipped, Source
from dividemix.data.threads import map_each
from dividemix.errors import InputError

_SMALL = 96  # up to this many pixels a side, images are trained on as they are
LARGE = 224  # and larger ones at this size, for which the networks for large images are made


@dataclass(frozen=True, kw_only=True, eq=False)
class Listing:
    """What a reader found before any image is opened: N images with the labels they were given."""

    where: str
    """The folder or file, as errors name it."""
    files: Sequence[ImageLike]
    paths: Sequence[str]
    """(N,): names of the images as the user knows them."""
    labels: Sequence[str]
    """(N,): names of classes."""
    true_labels: Sequence[str] | None = None
    classes: Sequence[str] | None = None
    """All classes in their order, where the data says so; else those that the labels name, in natural order."""
    rows: Sequence[int] | None = None
    """(N,): where each image stands in the data as it was given, counted from 0; None: these images are all of it."""
    num_given: int | None = None
    """How many samples that data has; None: N."""
    skipped: Sequence[Skipped] = ()
    """Images that were left out already; they count among those that cannot be used."""
    ignored: Sequence[Skipped] = ()
    """What was found and is no image, or is absent as a whole: listed, not counted."""


def assemble(
    listing: Listing, *, image_size: int | None = None, large_size: int = LARGE, memory_gb: float = 4.0
) -> Source:
    """The images as a source without test images.

    All get one size: a square of `image_size`; or the size they have, if it is one and no side is longer than 96; or
    a square of their median shorter side, rounded to a multiple of 8, at least 16; or of `large_size` where that is
    more than 96. They have one channel if all are grey, else three. They are held in memory if they fit in `memory_gb`.

    Raises:
        InputError: if more than half of the images cannot be read, or less than two images or classes remain.
    """
    check_memory(memory_gb)
    headers = list(map_each(partial(_probed, listing.files), range(len(listing.files))))
    readable = [row for row, header in enumerate(headers) if not isinstance(header, str)]
    failed = [Skipped(listing.paths[row], header) for row, header in enumerate(headers) if isinstance(header, str)]
    check_enough(listing, failed)
    sizes = np.array([headers[row][:2] for row in readable])
    channels = 1 if all(headers[row][2] for row in readable) else 3
    shape = (*_common_size(sizes, image_size, large_size), channels)
    decoded = _decode(listing, readable, shape, memory_gb * 1e9)
    failed += decoded.failed
    check_enough(listing, failed)

    labels = [listing.labels[row] for row in decoded.rows]
    classes = listing.classes or natural_sorted(set(labels))
    dropped = [] if listing.classes else natural_sorted(set(listing.labels) - set(classes))
    if len(decoded.rows) < 2 or len(set(labels)) < 2:
        raise InputError(
            f"{listing.where}: {len(decoded.rows)} readable images in {len(set(labels))} classes: "
            "at least two images in two classes are needed"
        )
    true_labels = None
    if listing.true_labels is not None:
        true_names = [listing.true_labels[row] for row in decoded.rows]
        true_labels = numbered(true_names, classes, f"{listing.where}: true labels")
    height, width = np.median(sizes, axis=0)
    mean, std = decoded.statistics or (None, None)
    return Source(
        name=Path(listing.where).resolve().stem,
        classes=tuple(classes),
        train_images=decoded.images,
        train_labels=numbered(labels, classes, f"{listing.where}: labels"),
        true_labels=true_labels,
        mean=mean,
        std=std,
        paths=tuple(listing.paths[row] for row in decoded.rows),
        rows=np.array(decoded.rows if listing.rows is None else [listing.rows[row] for row in decoded.rows]),
        num_given=len(listing.files) if listing.num_given is None else listing.num_given,
        skipped=(
            *listing.skipped,
            *failed,
            *(Skipped(name, "class without a readable image: left out") for name in dropped),
            *listing.ignored,
        ),
        median_size=(float(height), float(width)),
    )


def with_test(source: Source, listing: Listing, *, memory_gb: float = 4.0) -> Source:
    """The source with test images, in the size of its training images; in memory if they fit in what those leave.

    Raises:
        InputError: if more than half of the images cannot be read, or one has a label that is no class.
    """
    shape = source.train_images.shape
    left = memory_gb * 1e9 - (0 if isinstance(source.train_images, ImageFiles) else source.train_images.nbytes)
    decoded = _decode(listing, range(len(listing.files)), (shape[1], shape[2], shape[3]), left)
    check_enough(listing, decoded.failed)
    labels = [listing.labels[row] for row in decoded.rows]
    skipped = (*listing.skipped, *decoded.failed, *listing.ignored)
    return dataclasses.replace(
        source,
        test_images=decoded.images,
        test_labels=numbered(labels, source.classes, f"{listing.where}: test labels"),
        skipped=(*source.skipped, *(Skipped(one.path, f"test set: {one.reason}") for one in skipped)),
    )


def check_memory(memory_gb: float) -> None:
    """Nothing, for an amount of memory; InputError for what is none."""
    if not memory_gb >= 0:  # NaN as well
        raise InputError(f"memory_gb is {memory_gb}: give the gigabytes that decoded images may take, from 0")


def check_image_size(image_size: int | None) -> None:
    """Nothing, for a size that images can be given; InputError for any other."""
    if image_size is not None and not 8 <= image_size <= 1024:
        raise InputError(f"image_size is {image_size}: pixels a side, from 8 to 1024, are needed")


def _probed(files: Sequence[ImageLike], row: int) -> tuple[int, int, bool] | str:
    """What the header of an image tells, or why it cannot be read."""
    try:
        return probe(files[row])
    except UnreadableImage as error:
        return str(error)


def _common_size(sizes: NDArray[np.int64], image_size: int | None, large_size: int) -> tuple[int, int]:
    """Height and width for all images, whose own are sizes (N, 2)."""
    check_image_size(image_size)
    if image_size is not None:
        return image_size, image_size
    if (sizes == sizes[0]).all() and sizes[0].max() <= _SMALL:
        return int(sizes[0, 0]), int(sizes[0, 1])
    shorter = float(np.median(sizes.min(axis=1)))
    side = max(16, 8 * round(shorter / 8)) if shorter <= _SMALL else large_size
    return side, side


@dataclass(frozen=True, kw_only=True, eq=False)
class _Decoded:
    """Images of the rows of a listing that could be decoded; `statistics` where they are not in memory."""

    images: Images | ImageFiles
    rows: list[int]
    failed: list[Skipped]
    statistics: Statistics | None


def _decode(listing: Listing, rows: Sequence[int], shape: tuple[int, int, int], memory: float) -> _Decoded:
    """Decode each of the rows once: into memory if all fit in so many bytes, else to know which can be."""
    in_memory = len(rows) * int(np.prod(shape)) <= memory
    images = np.empty((len(rows) if in_memory else 0, *shape), dtype=np.uint8)
    digests: list[bytes] = []
    counts = np.zeros((shape[-1], 256), dtype=np.int64)
    kept: list[int] = []
    failed: list[Skipped] = []

    def read(row: int) -> NDArray[np.uint8] | tuple[bytes, NDArray[np.int64]] | str:
        try:
            image = read_image(listing.files[row], *shape)
        except UnreadableImage as error:
            return str(error)
        return image if in_memory else (image_digest(image), level_counts(image))

    for row, result in zip(rows, map_each(read, rows), strict=True):
        if isinstance(result, str):
            failed.append(Skipped(listing.paths[row], result))
            continue
        if isinstance(result, tuple):
            digests.append(result[0])
            counts += result[1]
        else:
            images[len(kept)] = result
        kept.append(row)
    if in_memory or not kept:
        return _Decoded(images=images[: len(kept)], rows=kept, failed=failed, statistics=None)
    packed = np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(-1, 16)
    files = ImageFiles(listing.files, shape, np.array(kept), packed)
    return _Decoded(images=files, rows=kept, failed=failed, statistics=mean_and_std(counts))


def check_enough(listing: Listing, failed: Sequence[Skipped]) -> None:
    """Nothing, unless there is no image or most cannot be used: then an InputError that names the first ones."""
    unusable = [*listing.skipped, *failed]
    total = len(listing.files) + len(listing.skipped)
    if total == 0:
        raise InputError(f"{listing.where}: there are no images in it")
    if 2 * len(unusable) > total:
        first = "; ".join(f"{one.path[:100]!r}: {one.reason}" for one in unusable[:3])
        raise InputError(f"{listing.where}: too many images cannot be used, {len(unusable)} of {total}: {first}")
