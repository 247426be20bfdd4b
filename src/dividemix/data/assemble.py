"""Make a source of a list of image files with labels: resize all to one size, skip unreadable files, order classes.

Shapes: N samples, H x W pixels, K channels (1 or 3), C classes.
"""

import dataclasses
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dividemix.data.classes import natural_sorted, numbered
from dividemix.data.common_shape import LARGE, common_channels, common_size
from dividemix.data.image_files import ImageFiles, image_digest
from dividemix.data.images import ImageLike, probe, read_image, result_or_reason
from dividemix.data.listed import Listed, find_listed
from dividemix.data.listing import Listing, check_enough
from dividemix.data.pixel_statistics import Statistics, level_counts, mean_and_std, pixel_statistics
from dividemix.data.source import Images, Skipped, Source
from dividemix.data.threads import map_each
from dividemix.errors import InputError, counted, shown

MANY = 200_000  # more images than this are not all decoded before the first epoch
_SAMPLE = 10_000  # of so many, this number decides on their size and their mean


def assemble(
    listing: Listing, *, image_size: int | None = None, large_size: int = LARGE, memory_gb: float = 4.0
) -> Source:
    """Return the images as a source without test images.

    All images get one shape (data/common_shape.py). They are held in memory if they fit in `memory_gb`. Up to MANY
    images are all decoded here. Of more, a sample is, and the others when they are first needed (data/listed.py),
    whether they fit in memory or not: so a training does not depend on the memory. Raises InputError if more than half
    of them cannot be read, or fewer than two images or classes remain.
    """
    check_memory(memory_gb)
    examine = _examine_some if has_many(listing) else _examine_all
    decoded = examine(listing, image_size, large_size, memory_gb * 1e9)
    failed = decoded.failed

    labels = [listing.labels[row] for row in decoded.rows]
    classes = listing.classes or natural_sorted(set(labels))
    dropped = () if listing.classes else natural_sorted(set(listing.labels) - set(classes))
    failed += [Skipped(name, "class without a readable image: skipped") for name in dropped]
    if len(decoded.rows) < 2 or len(set(labels)) < 2:
        reason = f" (skipped: {failed[0].path}: {failed[0].reason})" if failed else ""
        raise InputError(
            f"{listing.where}: {counted(len(decoded.rows), 'readable image')} of"
            f" {counted(len(set(labels)), 'class')}{reason}: at least one image of each of two classes is needed"
        )
    truth = None if listing.true_labels is None else [listing.true_labels[row] for row in decoded.rows]
    mean, std = decoded.statistics or (None, None)
    return Source(
        name=Path(listing.where).resolve().stem,
        classes=tuple(classes),
        train_samples=decoded.images,
        train_labels=numbered(labels, classes, f"{listing.where}: labels"),
        true_labels=None if truth is None else numbered(truth, classes, f"{listing.where}: true labels"),
        mean=mean,
        std=std,
        paths=tuple(listing.paths[row] for row in decoded.rows),
        rows=np.array(decoded.rows if listing.rows is None else np.asarray(listing.rows)[decoded.rows]),
        num_given=len(listing.files) if listing.num_given is None else listing.num_given,
        skipped=(*listing.skipped, *failed, *listing.ignored),
        votes=None if listing.votes is None else listing.votes.subset(decoded.rows),
        notes=(*listing.notes, *decoded.notes),
        median_size=decoded.median_size,
    )


def has_many(listing: Listing) -> bool:
    """Whether a listing of files has so many that they are not all decoded before the first epoch."""
    if len(listing.files) <= MANY:
        return False
    files = listing.files
    return listing.sizes is not None or (isinstance(files, list) and all(isinstance(file, Path) for file in files))


def _examine_all(listing: Listing, image_size: int | None, large_size: int, memory: float) -> "_Decoded":
    """Open every image for its size, and decode it."""
    headers = list(map_each(partial(result_or_reason, probe, listing.files), range(len(listing.files))))
    readable = [row for row, header in enumerate(headers) if not isinstance(header, str)]
    failed = [Skipped(listing.paths[row], header) for row, header in enumerate(headers) if isinstance(header, str)]
    check_enough(listing, failed)
    shape, notes, middle = _shape([one for one in headers if not isinstance(one, str)], image_size, large_size)
    decoded = _decode(listing, readable, shape, memory)
    failed += decoded.failed
    check_enough(listing, failed)
    return decoded._replace(failed=failed, notes=notes, median_size=middle)


def _examine_some(listing: Listing, image_size: int | None, large_size: int, memory: float) -> "_Decoded":
    """Open and decode a sample of the images, and find the files of all."""
    number = len(listing.files)
    sample = (np.arange(_SAMPLE) * number // _SAMPLE).tolist()
    headers = list(map_each(partial(result_or_reason, probe, listing.files), sample))
    readable = [row for row, header in zip(sample, headers, strict=True) if not isinstance(header, str)]
    if 2 * len(readable) < len(sample):
        row, why = next((row, why) for row, why in zip(sample, headers, strict=True) if isinstance(why, str))
        raise InputError(
            f"{listing.where}: {len(sample) - len(readable)} of {len(sample)} images that were tried cannot be read: "
            f"{listing.paths[row][:100]!r}: {why}{listing.remedy}"
        )
    shape, notes, middle = _shape([one for one in headers if not isinstance(one, str)], image_size, large_size)
    found = find_listed(listing, shape, keep=number * int(np.prod(shape)) <= memory)
    usable = np.searchsorted(found.rows, readable)
    notes.append(f"{number:,} images: {len(usable):,} of them decide on size and mean, others are opened when needed")
    statistics = pixel_statistics(found.images.subset(usable))
    return _Decoded(
        found.images, found.rows.tolist(), list(found.skipped[len(listing.skipped) :]), statistics, notes, middle
    )


def _shape(
    headers: Sequence[tuple[int, int, bool]], image_size: int | None, large_size: int
) -> tuple[tuple[int, int, int], list[str], tuple[float, float]]:
    """The common shape of images with these headers, lines for the user, and the median height and width."""
    sizes = np.array([header[:2] for header in headers])
    channels, notes = common_channels([bool(header[2]) for header in headers])
    (height, width), about_size = common_size(sizes, image_size, large_size)
    middle = np.median(sizes, axis=0)
    return (height, width, channels), [*notes, *about_size], (float(middle[0]), float(middle[1]))


def with_test(source: Source, listing: Listing, *, memory_gb: float = 4.0) -> Source:
    """Return the source with test images, in the size of its training images.

    They are held in memory if they fit into the part of `memory_gb` that the training images do not use. Raises
    InputError if more than half of them cannot be read, or a label is not a class of the source.
    """
    shape = source.train_samples.shape
    left = memory_gb * 1e9 - source.train_samples.nbytes
    decoded = _found(listing, (shape[1], shape[2], shape[3]), left)
    check_enough(listing, decoded.failed)
    labels = [listing.labels[row] for row in decoded.rows]
    skipped = (*listing.skipped, *decoded.failed, *listing.ignored)
    return dataclasses.replace(
        source,
        test_samples=decoded.images,
        test_labels=numbered(labels, source.classes, f"{listing.where}: test labels"),
        skipped=(*source.skipped, *(Skipped(one.path, f"test set: {one.reason}") for one in skipped)),
        notes=(*source.notes, *(f"test set: {note}" for note in listing.notes)),
    )


def check_memory(memory_gb: float) -> None:
    """Raise InputError unless `memory_gb` is a number >= 0."""
    if not (isinstance(memory_gb, int | float) and 0 <= memory_gb < 1e9):  # NaN too is refused
        raise InputError(f"memory_gb is {shown(memory_gb)}: must be a number >= 0, the gigabytes for decoded images")


def _found(listing: Listing, shape: tuple[int, int, int], memory: float) -> "_Decoded":
    """The images of a listing in a known shape."""
    if not has_many(listing):
        return _decode(listing, range(len(listing.files)), shape, memory)
    found = find_listed(listing, shape, keep=len(listing.files) * int(np.prod(shape)) <= memory)
    return _of_listed(found, listing)


def _of_listed(found: Listed, listing: Listing) -> "_Decoded":
    return _Decoded(found.images, found.rows.tolist(), list(found.skipped[len(listing.skipped) :]), None)


class _Decoded(NamedTuple):
    """The rows of a listing that can be used, and their images; `statistics` if those are not in memory."""

    images: Images | ImageFiles
    rows: list[int]
    failed: list[Skipped]
    statistics: Statistics | None
    notes: Sequence[str] = ()
    median_size: tuple[float, float] | None = None


def _decode(listing: Listing, rows: Sequence[int], shape: tuple[int, int, int], memory: float) -> _Decoded:
    """Decode each row once: into memory if all fit into so many bytes, else only to find out which can be decoded."""
    in_memory = len(rows) * int(np.prod(shape)) <= memory
    images = np.empty((len(rows) if in_memory else 0, *shape), dtype=np.uint8)
    digests: list[bytes] = []
    counts = np.zeros((shape[-1], 256), dtype=np.int64)
    kept: list[int] = []
    failed: list[Skipped] = []

    def read(file: ImageLike) -> NDArray[np.uint8] | tuple[bytes, NDArray[np.int64]]:
        image = read_image(file, *shape)
        return image if in_memory else (image_digest(image), level_counts(image))

    results = map_each(partial(result_or_reason, read, listing.files), rows)
    for row, result in zip(rows, results, strict=True):
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
        return _Decoded(images[: len(kept)], kept, failed, None)
    packed = np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(-1, 16)
    return _Decoded(ImageFiles(listing.files, shape, np.array(kept), packed), kept, failed, mean_and_std(counts))
