"""What processes do in the test of divided reading: each returns what it got and what it read itself."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dividemix.engine import processes
from dividemix.engine.divided_reading import divided_reading

PICTURES = np.random.default_rng(0).integers(0, 256, (20, 2, 3, 1), dtype=np.uint8)
BATCHES = [[3, 1, 4, 1, 5, 9, 2, 6], [7], [], [0, 19, 18], [2, 2, 2, 2, 2]]


def read_all() -> dict[str, Any]:
    """The images of all batches, together with other processes, and the indices that this one read."""
    own: list[int] = []

    def read(batches: Iterable[NDArray[np.int64]]) -> Iterator[NDArray[np.uint8]]:
        for index in batches:
            own.extend(index.tolist())
            yield PICTURES[index]

    with processes.together():
        found = divided_reading(read, (np.array(batch, dtype=np.int64) for batch in BATCHES))
        return {"images": [images.tolist() for images in found], "own": own}
