"""Read shards: many images in each .tar or .parquet file, listed from their indices. No image is opened."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate, chain

import numpy as np
from numpy.typing import NDArray

from dividemix.data.image_files import MadeWhenRead
from dividemix.data.listing import Listing
from dividemix.data.readers.shard_sets import ShardSet
from dividemix.data.readers.tar_shards import index_tar
from dividemix.data.shard_files import ShardFile
from dividemix.data.shard_index import ShardIndex
from dividemix.data.source import Skipped
from dividemix.data.threads import map_each
from dividemix.errors import InputError

Indexed = tuple[ShardFile, ShardIndex]


def list_shards(shards: ShardSet, *, label_column: str = "label") -> tuple[Listing, Listing | None]:
    """The images to train on and, if some shards are for testing, those to test on.

    Raises:
        InputError: if a shard cannot be read, or no image has a label.
    """
    index = partial(_INDEX[shards.kind], label_column=label_column)
    listings = [_listing(shards, part, index) for part in (shards.train, shards.test) if part]
    return listings[0], listings[1] if shards.test else None


def _index_tar(name: str, shard: ShardFile, label_column: str) -> Indexed:
    del name
    return shard, index_tar(shard, label_column)


_INDEX: dict[str, Callable[..., Indexed]] = {"tar": _index_tar}


def _listing(shards: ShardSet, part: Mapping[str, ShardFile], index: Callable[..., Indexed]) -> Listing:
    """The images of some shards: those with a label, in the order of the shards."""
    found = list(map_each(lambda item: index(*item), list(part.items())))
    indices = [one for _, one in found]
    starts = np.array([0, *accumulate(map(len, indices))])
    names = [f"{shard}/{name}" for shard, one in zip(part, indices, strict=True) for name in one.names]
    labels = list(chain.from_iterable(one.labels for one in indices))
    truths = list(chain.from_iterable(one.true_labels for one in indices))
    problems = {
        int(start) + at: why for start, one in zip(starts, indices, strict=False) for at, why in one.problems.items()
    }
    if shards.classes is not None:
        labels, truths = (_named(values, shards.classes) for values in (labels, truths))
        problems |= {
            row: "its label is not one of the classes"
            for row, label in enumerate(labels)
            if label is None and row not in problems
        }
    used = np.setdiff1d(np.arange(len(names)), np.array(sorted(problems), dtype=np.int64))
    if len(names) and len(used) == 0:
        row, why = next(iter(problems.items()))
        raise InputError(f"{shards.where}: no image can be used; {names[row]}: {why}: {_REMEDY}")
    true_labels = [truths[row] for row in used]
    has_truth = any(truth is not None for truth in true_labels)
    if has_truth and None in true_labels:
        bare = names[used[true_labels.index(None)]]
        raise InputError(f"{shards.where}: {bare} has no true label: fill in all of them, or remove them")
    sizes = np.concatenate([one.sizes for one in indices])
    return Listing(
        where=shards.where,
        files=_Contents([file for file, _ in found], indices, starts, used),
        sizes=sizes[used],
        paths=[names[row] for row in used],
        labels=[labels[row] or "" for row in used],
        true_labels=[truth or "" for truth in true_labels] if has_truth else None,
        classes=shards.classes,
        rows=used,
        num_given=len(names),
        skipped=[Skipped(names[row], why) for row, why in sorted(problems.items())],
        ignored=[
            Skipped(f"{shard}/{name}", why)
            for shard, one in zip(part, indices, strict=True)
            for name, why in one.ignored
        ],
    )


_REMEDY = "each image needs key.cls, or key.json with the label in the field that label_column names"


def _named(values: Sequence[str | None], classes: Sequence[str]) -> list[str | None]:
    """Labels as names of classes: names stay, numbers are positions; None for others."""
    known: dict[str | None, str] = {str(number): name for number, name in enumerate(classes)}
    known |= {name: name for name in classes}
    return [known.get(value) for value in values]


class _Contents(MadeWhenRead):
    """The contents of image files in shards, read when they are asked for."""

    def __init__(
        self,
        files: Sequence[ShardFile],
        indices: Sequence[ShardIndex],
        starts: NDArray[np.int64],
        used: NDArray[np.int64],
    ):
        super().__init__(len(used), self._content)
        self._files, self._starts, self._used = files, starts, used
        self._offsets = np.concatenate([one.offsets for one in indices])
        self._sizes = np.concatenate([one.sizes for one in indices])
        self.waits = any(file.waits for file in files)

    def _content(self, row: int) -> bytes:
        place = int(self._used[row])
        shard = int(np.searchsorted(self._starts, place, side="right")) - 1
        return self._files[shard].read(int(self._offsets[place]), int(self._sizes[place]))
