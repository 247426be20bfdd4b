"""Make the embedded data set from the four gzip IDX files of Fashion-MNIST.

    python tools/embed_fashion.py FOLDER [OUT]

OUT is src/dividemix/data/embedded/fashion.npz unless given. The same input makes the same bytes.
"""

import gzip
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

EMBEDDED = Path(__file__).parents[1] / "src" / "dividemix" / "data" / "embedded" / "fashion.npz"
TRAIN_PER_CLASS = 600
TEST_PER_CLASS = 200


def read_idx(path: Path) -> NDArray[np.uint8]:
    """The uint8 array of a gzip IDX file: two zeros, type 8, the number of axes, each axis as big-endian int32."""
    content = gzip.decompress(path.read_bytes())
    if content[:3] != b"\0\0\x08":
        raise ValueError(f"{path}: not an IDX file of bytes")
    num_axes = content[3]
    shape = np.frombuffer(content, dtype=">i4", count=num_axes, offset=4)
    return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * num_axes).reshape(shape)


def first_of_each_class(labels: NDArray[Any], per_class: int) -> NDArray[np.intp]:
    """Index of the first `per_class` samples of each class, ascending, so that the original order is kept."""
    members = [np.flatnonzero(labels == label)[:per_class] for label in np.unique(labels)]
    return np.sort(np.concatenate(members))


def embed(folder: Path, out: Path) -> None:
    """Write `out`, an .npz with x_train, y_train, x_test, y_test."""
    arrays: dict[str, Any] = {}
    for split, prefix, per_class in (("train", "train", TRAIN_PER_CLASS), ("test", "t10k", TEST_PER_CLASS)):
        images = read_idx(folder / f"{prefix}-images-idx3-ubyte.gz")
        labels = read_idx(folder / f"{prefix}-labels-idx1-ubyte.gz")
        index = first_of_each_class(labels, per_class)
        arrays |= {f"x_{split}": images[index], f"y_{split}": labels[index]}
    unfinished = out.with_suffix(".tmp.npz")
    try:
        np.savez_compressed(unfinished, **arrays)
        unfinished.replace(out)
    finally:
        unfinished.unlink(missing_ok=True)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    embed(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) == 3 else EMBEDDED)
