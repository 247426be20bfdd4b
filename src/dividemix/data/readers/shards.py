"""Read shards: many images in each .tar or .parquet file, listed from their indices. No image is opened."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from dividemix.data.image_files import MadeWhenRead
from dividemix.data.listing import Listing
from dividemix.data.readers.parquet_shards import classes_of, index_parquet
from dividemix.data.readers.shard_sets import ShardSet
from dividemix.data.readers.tar_shards import index_tar
from dividemix.data.shard_files import ShardFile
from dividemix.data.shard_index import ShardIndex
from dividemix.data.source import Skipped
from dividemix.data.threads import map_each
from dividemix.errors import InputError

Indexed = tuple[ShardFile, ShardIndex]
_SHARDS_OF_STORE = 8  # indexed at a time in an object store: each may have millions of names


def list_shards(
    shards: ShardSet, *, path_column: str = "path", label_column: str = "label"
) -> tuple[Listing, Listing | None]:
    """The images to train on and, if some shards are for testing, those to test on.

    `label_column` is the field of a .json file in a .tar shard; both are columns of .parquet shards.

    Raises:
        InputError: if a shard cannot be read, or no image has a label.
    """
    index: Callable[[ShardFile], Indexed]
    if shards.kind == "tar":

        def index(shard: ShardFile) -> Indexed:
            return shard, index_tar(shard, label_column)

    else:
        index = partial(index_parquet, path_column=path_column, label_column=label_column)
        if shards.classes is None:
            found = classes_of(next(iter(shards.train.values())), path_column, label_column)
            shards = replace(shards, classes=None if found is None else tuple(found))
    listings = [_listing(shards, part, index) for part in (shards.train, shards.test) if part]
    return listings[0], listings[1] if shards.test else None


def _listing(shards: ShardSet, part: Mapping[str, ShardFile], index: Callable[[ShardFile], Indexed]) -> Listing:
    """The images of some shards: those with a label, in the order of the shards."""
    files: list[ShardFile] = []
    places: list[NDArray[np.int64]] = []  # (2, n) of each shard: offsets and sizes
    names: list[str] = []
    labels: list[str | None] = []
    truths: list[str | None] = []
    problems: dict[int, str] = {}
    ignored: list[Skipped] = []
    waits = any(file.waits for file in part.values())
    each = map_each(index, list(part.values()), size=_SHARDS_OF_STORE if waits else 1, waits=waits)
    for shard, (file, found) in zip(part, each, strict=True):
        problems |= {len(names) + at: why for at, why in found.problems.items()}
        names += [f"{shard}/{name}" for name in found.names]
        labels += found.labels
        truths += found.true_labels
        ignored += [Skipped(f"{shard}/{name}", why) for name, why in found.ignored]
        files.append(file)
        places.append(np.stack([found.offsets, found.sizes]))
    if shards.classes is not None:
        labels, truths = (_named(values, shards.classes) for values in (labels, truths))
        unknown = (row for row, label in enumerate(labels) if label is None and row not in problems)
        problems |= dict.fromkeys(unknown, "its label is not one of the classes")
    is_used = np.ones(len(names), dtype=np.bool_)
    is_used[list(problems)] = False
    used = np.flatnonzero(is_used)
    if len(names) and len(used) == 0:
        row, why = next(iter(problems.items()))
        raise InputError(f"{shards.where}: no image can be used; {names[row]}: {why}: {_REMEDY}")
    skipped = [Skipped(names[row], why) for row, why in sorted(problems.items())]
    num_given = len(names)
    if problems:
        names = [names[row] for row in used]
        labels, truths = ([column[row] for row in used] for column in (labels, truths))
    has_truth = any(truth is not None for truth in truths)
    if has_truth and None in truths:
        bare = names[truths.index(None)]
        raise InputError(f"{shards.where}: {bare} has no true label: fill in all of them, or remove them")
    contents = _Contents(files, places, used)
    return Listing(
        where=shards.where,
        files=contents,
        sizes=contents.sizes,
        paths=names,
        labels=[label or "" for label in labels],
        true_labels=[truth or "" for truth in truths] if has_truth else None,
        classes=shards.classes,
        rows=used,
        num_given=num_given,
        skipped=skipped,
        ignored=ignored,
    )


_REMEDY = "each image of a .tar shard needs key.cls, or key.json with the label in the field that label_column names"


def _named(values: Sequence[str | None], classes: Sequence[str]) -> list[str | None]:
    """Labels as names of classes: names stay, numbers are positions; None for others."""
    known: dict[str | None, str] = {str(number): name for number, name in enumerate(classes)}
    known |= {name: name for name in classes}
    return [known.get(value) for value in values]


class _Contents(MadeWhenRead):
    """The contents of image files in shards, read when they are asked for."""

    def __init__(self, files: Sequence[ShardFile], places: Sequence[NDArray[np.int64]], used: NDArray[np.int64]):
        super().__init__(len(used), self._content)
        starts = np.array([0, *accumulate(one.shape[1] for one in places)])
        self._files, self._shards = files, np.searchsorted(starts, used, side="right") - 1
        self._offsets, self.sizes = np.concatenate(places, axis=1)[:, used]
        self._positions = used - starts[self._shards]
        self.waits = any(file.waits for file in files)

    def name_of(self, row: int) -> str:
        """The shard of an image, and its position there, for messages."""
        return f"{self._files[self._shards[row]].name}, image {self._positions[row]}"

    def _content(self, row: int) -> bytes:
        file: ShardFile = self._files[self._shards[row]]
        return file.read(int(self._offsets[row]), int(self.sizes[row]))
