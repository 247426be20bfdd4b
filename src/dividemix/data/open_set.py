"""Open-set noise: some images are replaced by images that belong to no class, and keep the labels.

Shapes: N training images, M images from elsewhere.
"""

import dataclasses
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dividemix.data.builtin import BUILT_IN
from dividemix.data.readers import read_source, training_images_like
from dividemix.data.source import Source
from dividemix.errors import InputError

NO_CLASS = -1  # the true label of an image that belongs to no class


def with_outsiders(
    source: Source, rate: float, other: str, *, seed: int, root: Path | None = None, memory_gb: float = 4.0
) -> tuple[Source, NDArray[np.bool_]]:
    """The source with round(rate * N) of its training images replaced, and where (N,).

    They come from the training images of `other`: a folder, a file, or a built-in set in `root`. Each is used once, as
    long as there are enough. Raises InputError if they cannot be read, or the images are not in memory.
    """
    images = source.train_samples
    if not isinstance(images, np.ndarray) or images.ndim != 4:
        raise InputError("open_set noise needs images in memory: raise memory_gb, or use less data")
    if other in BUILT_IN:
        outside = read_source(other, root if BUILT_IN[other].needs_root else None).train_samples
    else:
        outside = training_images_like(source, other, memory_gb=memory_gb)
    if outside.shape[1:] != images.shape[1:]:
        shapes = f"{outside.shape[1:]}, those to train on are {images.shape[1:]}"
        raise InputError(f"open_set noise: the images of {other} are {shapes}; resize them")
    rng = np.random.Generator(np.random.PCG64([seed, 3]))  # another stream than other noise of the same seed
    replaced = rng.permutation(len(images)) < round(rate * len(images))
    order = np.concatenate([rng.permutation(len(outside)) for _ in range(-(-len(images) // len(outside)))])
    mixed = images.copy()
    mixed[replaced] = outside[order[: int(replaced.sum())]]
    return dataclasses.replace(source, train_samples=mixed), replaced
