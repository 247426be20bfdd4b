"""From a job to what a run works with: training data, test data, and the true labels that only scoring sees."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from dividemix.data.dataset import ArrayData, pixel_statistics
from dividemix.data.noise import NoisyLabels, add_noise, parse_noise
from dividemix.data.readers import read_source
from dividemix.errors import InputError
from dividemix.runs.job import Job


@dataclass(frozen=True, eq=False)
class Material:
    """Data of a run. `true_labels` (N,) is None where nobody knows them; `noise` where none was added."""

    classes: tuple[str, ...]
    image_shape: tuple[int, int, int]
    train: ArrayData
    test: ArrayData | None
    true_labels: NDArray[np.int64] | None
    noise: NoisyLabels | None
    digest: str  # of everything above: the same data has the same


def gather(job: Job, device: torch.device) -> Material:
    """Read the job's data, limit it, add its noise, and put it on the device.

    Raises:
        InputError: for whatever is wrong with the data or the noise.
    """
    spec = parse_noise(job.noise)
    source = read_source(job.data, None if job.root is None else Path(job.root))
    if job.limit_train is not None:
        source = source.limit_train(job.limit_train)
    labels, true_labels, noise = source.train_labels, source.true_labels, None
    if spec.kind != "none":
        if true_labels is not None and not np.array_equal(labels, true_labels):
            raise InputError(f"noise {job.noise}: {job.data} has noisy labels already (y_true); leave out --noise")
        true_labels = labels
        noise = add_noise(
            true_labels, spec, num_classes=len(source.classes), seed=job.config.seed, similar=source.similar
        )
        labels = noise.labels
    mean, std = source.mean, source.std
    if mean is None or std is None:
        mean, std = pixel_statistics(source.train_images)
    train = ArrayData(
        source.train_images,
        labels,
        num_classes=len(source.classes),
        mean=mean,
        std=std,
        crop_padding=job.config.crop_padding,
        flip=job.config.flip,
        device=device,
    )
    test = None
    if source.test_images is not None and source.test_labels is not None:
        test = ArrayData(
            source.test_images,
            source.test_labels,
            num_classes=len(source.classes),
            mean=mean,
            std=std,
            device=device,
        )
    height, width, channels = source.train_images.shape[1:]
    digest = hashlib.blake2b(repr((source.classes, source.train_images.shape)).encode(), digest_size=16)
    for array in (source.train_images, labels, true_labels, source.test_images, source.test_labels):
        if array is not None:
            digest.update(np.ascontiguousarray(array).data)
    return Material(source.classes, (height, width, channels), train, test, true_labels, noise, digest.hexdigest())
