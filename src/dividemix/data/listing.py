"""What a reader finds before any image is opened: a list of images with their labels."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dividemix.data.images import ImageLike
from dividemix.data.source import Skipped
from dividemix.data.votes import Votes
from dividemix.errors import InputError


@dataclass(frozen=True, kw_only=True, eq=False)
class Listing:
    """What a reader finds before any image is opened: N images with their given labels."""

    where: str  # The folder or file, as error messages name it
    files: Sequence[ImageLike]
    paths: Sequence[str]  # (N,): names of the images as the user knows them
    labels: Sequence[str]  # (N,): names of classes
    sizes: NDArray[np.int64] | None = None  # (N,): bytes of each file, if the reader knows them
    true_labels: Sequence[str] | None = None
    classes: Sequence[str] | None = None
    """All classes in order, if the data lists them; None: the classes that the labels name, in natural order."""
    rows: Sequence[int] | NDArray[np.int64] | None = None
    """(N,): position of each image in the data as it was given, from 0; None: these images are all of the data."""
    num_given: int | None = None  # Number of samples in the data as it was given; None: N
    votes: Votes | None = None  # Those behind the labels, if several annotators gave them
    skipped: Sequence[Skipped] = ()  # Images that the reader skipped; they count as unusable
    ignored: Sequence[Skipped] = ()
    """Files that are not images, and classes that are absent: reported, not counted as unusable."""
    notes: Sequence[str] = ()  # What the user should know about how the data was read
    remedy: str = ""  # What to do if many files do not exist: the end of that message


def check_enough(listing: Listing, failed: Sequence[Skipped]) -> None:
    """Raise InputError, naming the first bad images, if there are none or more than half cannot be used."""
    unusable = [*listing.skipped, *failed]
    total = len(listing.files) + len(listing.skipped)
    if total == 0:
        raise InputError(f"{listing.where}: has no images")
    if 2 * len(unusable) > total:
        first = "; ".join(f"{one.path[:100]!r}: {one.reason}" for one in unusable[:3])
        count = f"{len(unusable)} of {total}"
        remedy = listing.remedy if any(one.reason == "no such file" for one in unusable) else ""
        raise InputError(f"{listing.where}: too many images cannot be used, {count}: {first}{remedy}")
