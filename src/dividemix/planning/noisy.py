"""Add the noise of a job to its data."""

import dataclasses
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dividemix.data.human_labels import human_labels
from dividemix.data.noise import NoiseSpec, NoisyLabels, add_noise
from dividemix.data.open_set import NO_CLASS, with_outsiders
from dividemix.data.source import Source
from dividemix.errors import InputError
from dividemix.planning.job import Job


class Noisy(NamedTuple):
    """The data, its given labels (N,), the true ones (N,) if they are known, and the noise that was added."""

    source: Source
    labels: NDArray[np.int64]
    true_labels: NDArray[np.int64] | None
    noise: NoisyLabels | None


def with_noise(job: Job, source: Source, spec: NoiseSpec) -> Noisy:
    """The source with noise; what was given is then true. Raises InputError if it has noisy labels already."""
    true_labels = source.true_labels
    if spec.kind == "none":
        return Noisy(source, source.train_labels, true_labels, None)
    if true_labels is not None and not np.array_equal(source.train_labels, true_labels):
        raise InputError(f"noise {job.noise}: {job.data} has noisy labels already; set noise to none")
    true_labels = source.train_labels
    root = None if job.root is None else Path(job.root)
    human = human_labels(job.data, spec.of, root, source.rows, true_labels) if spec.kind == "human" else None
    noise = add_noise(
        true_labels,
        spec,
        num_classes=len(source.classes),
        seed=job.settings.seed,
        similar=source.similar,
        samples=source.train_samples,
        human=human,
    )
    if spec.kind == "open_set":
        source, replaced = with_outsiders(
            source, spec.rate, spec.of, seed=job.settings.seed, root=root, memory_gb=job.memory_gb
        )
        true_labels = np.where(replaced, NO_CLASS, true_labels)
        noise = dataclasses.replace(noise, true_rate=float(replaced.mean()))
    return Noisy(source, noise.labels, true_labels, noise)
