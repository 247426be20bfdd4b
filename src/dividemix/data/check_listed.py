"""Check a data set with official lists of image files: a finding for each list and each split."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from pkgutil import resolve_name

import numpy as np

from dividemix.data.builtin import BUILT_IN
from dividemix.data.check import Finding, Progress
from dividemix.data.images import read_image, result_or_reason
from dividemix.data.listed import file_sizes
from dividemix.data.listing import Listing
from dividemix.data.threads import map_each
from dividemix.errors import InputError, is_refusal

_NUM_NAMED = 3  # files that are named if many are missing
_decoded = partial(read_image, height=32, width=32, channels=3)


def check_listed(name: str, root: Path, decode: bool, progress: Progress) -> Iterator[Finding]:
    """A finding for each list and, if all lists exist, for the images of each split."""
    built_in = BUILT_IN[name]
    assert built_in.lister is not None
    exists = {path: (root / path).is_file() for path in built_in.lists}
    yield from (Finding("ok" if found else "missing", str(root / path)) for path, found in exists.items())
    if not all(exists.values()):
        return
    try:
        listings: dict[str, Listing | None] = resolve_name(built_in.lister)(root)._asdict()
    except InputError as error:
        if is_refusal(error.__cause__):
            raise
        yield Finding("damaged", str(root), str(error))
        return
    sizes = {split: file_sizes(listing.files) for split, listing in listings.items() if listing is not None}
    total = sum(int((of_split > 0).sum()) for of_split in sizes.values())
    numbers = count(1)
    for split, listing in listings.items():
        what = f"{split} images"
        if listing is None:
            yield Finding("note", what, "none: not tested")
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
        results = map_each(partial(result_or_reason, _decoded, listing.files), rows)
        for row, result in zip(rows, results, strict=True):
            damaged += [f"{listing.paths[row]} ({result})"] if isinstance(result, str) else []
            progress(next(numbers), total)
        num_images = len(listing.files)
        official = built_in.num_images.get(split, num_images)
        if missing:
            yield Finding("missing", what, _some(missing, num_images))
        if damaged:
            yield Finding("damaged", what, _some(damaged, num_images))
        if not missing and not damaged:
            more = "" if num_images == official else f"; the official data set has {official}"
            state = "readable" if decode else "present"
            yield Finding("note" if more else "ok", what, f"{num_images}, all {state}{more}")


def _some(paths: Sequence[str], num_images: int) -> str:
    """The number of paths, and the first of them."""
    named = ", ".join(paths[:_NUM_NAMED]) + (", ..." if len(paths) > _NUM_NAMED else "")
    return f"{len(paths)} of {num_images}: {named}"
