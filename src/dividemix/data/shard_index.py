"""What a shard contains: for each image its name, its place in a file and its labels. Made once and kept on disk.

An index is kept under the digest of what it was made from (the name, size and time of the shard, and the settings), and
it is stored with its own digest. One that does not fit is made again.

Shapes: n images of a shard.
"""

import io
import json
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dividemix import atomic
from dividemix.data.cache_folder import cache_folder
from dividemix.errors import DamagedCacheWarning, InputError
from dividemix.stored import check_shape, digest_of, read_bytes

FORMAT = 2  # of an index on disk
_MOST = 1 << 33  # bytes of an index on disk
_NONE = -1  # the number of a label that is missing


@dataclass(frozen=True, kw_only=True, eq=False)
class ShardIndex:
    """The images of a shard, in their order. A missing label is None."""

    names: Sequence[str]
    offsets: NDArray[np.int64]  # (n,): where the content of each begins in the file
    sizes: NDArray[np.int64]  # (n,): in bytes
    labels: Sequence[str | None]
    true_labels: Sequence[str | None]
    problems: dict[int, str]  # Position of an image that cannot be used -> the reason
    sums: NDArray[np.uint32] | None = None  # (n,): the CRC-32 of each content, if the file is a copy of ours
    ignored: Sequence[tuple[str, str]] = ()  # Other files in the shard, and why they were ignored

    def __len__(self) -> int:
        return len(self.names)


def kept_index(about: Any, make: Callable[[], ShardIndex]) -> ShardIndex:
    """The index that was made from `about`, JSON's types: from the disk, or made and written to the disk.

    Raises what `make` raises, and InputError if the system refuses to read it. A disk that cannot be written is no
    error: the index is made again next time.
    """
    path = cache_folder() / "shards" / f"{digest_of(b'', [FORMAT, about])}.index"
    if path.is_file():
        try:
            return _read(path)
        except (InputError, ValueError, LookupError, OSError) as error:
            if isinstance(error.__cause__, OSError):
                raise
            warnings.warn(f"{path}: damaged ({error}); it is made again", DamagedCacheWarning, stacklevel=2)
    index = make()
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        content = _packed(index)
        atomic.write_bytes(path, digest_of(content).encode() + content)
    return index


def _packed(index: ShardIndex) -> bytes:
    known = sorted({label for labels in (index.labels, index.true_labels) for label in labels if label is not None})
    number = {label: place for place, label in enumerate(known)}
    problems = {str(place): reason for place, reason in index.problems.items()}
    about = {"labels": known, "problems": problems, "ignored": [list(one) for one in index.ignored]}
    sums: dict[str, Any] = {} if index.sums is None else {"sums": index.sums}
    buffer = io.BytesIO()
    np.savez(
        buffer,
        about=np.frombuffer(json.dumps(about).encode(), dtype=np.uint8),
        names=np.frombuffer("\0".join(index.names).encode(), dtype=np.uint8),
        offsets=index.offsets,
        sizes=index.sizes,
        **sums,
        labels=np.array([number.get(label, _NONE) if label is not None else _NONE for label in index.labels], np.int32),
        true_labels=np.array(
            [number.get(label, _NONE) if label is not None else _NONE for label in index.true_labels], np.int32
        ),
    )
    return buffer.getvalue()


def _read(path: Path) -> ShardIndex:
    """The index in a file. Raises InputError, ValueError or LookupError if it is damaged."""
    stored = read_bytes(path, _MOST)
    digest, content = stored[:32], stored[32:]
    if digest_of(content).encode() != digest:
        raise ValueError("wrong digest")
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        about = json.loads(arrays["about"].tobytes())
        check_shape(about, dict[str, Any])
        known: list[str | None] = [*about["labels"], None]  # the last for -1
        names = arrays["names"].tobytes().decode().split("\0") if len(arrays["offsets"]) else []
        return ShardIndex(
            names=names,
            offsets=arrays["offsets"],
            sizes=arrays["sizes"],
            sums=arrays.get("sums"),
            labels=[known[number] for number in arrays["labels"].tolist()],
            true_labels=[known[number] for number in arrays["true_labels"].tolist()],
            problems={int(place): reason for place, reason in about["problems"].items()},
            ignored=[(name, reason) for name, reason in about["ignored"]],
        )


def counted(names: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Files with their reasons, those of one extension and one reason as one line once there are many of them."""
    groups: dict[tuple[str, str], list[str]] = {}
    for name, reason in names:
        _, dot, extension = name.rpartition("/")[2].partition(".")
        groups.setdefault((f"*{dot}{extension}", reason), []).append(name)
    found = []
    for (pattern, reason), members in groups.items():
        if len(members) <= 3:
            found += [(name, reason) for name in members]
        else:
            found.append((pattern, f"{len(members):,} files: {reason}"))
    return found
