"""A source of images turned into one of vectors, by the encoder that a job names."""

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dividemix.data.image_files import fingerprint
from dividemix.data.source import Encoding, Samples, Source
from dividemix.encoders.encode import encoded
from dividemix.encoders.encoder import Encoder, ImageEncoder
from dividemix.encoders.find import find_encoder
from dividemix.engine.device import choose_device
from dividemix.errors import InputError
from dividemix.planning.job import Job


def encoder_of(job: Job) -> Encoder | None:
    """The job's encoder of images, loaded; None if it has none. Raises InputError if it cannot be had."""
    if job.encoder is None:
        return None
    encoder = find_encoder(job.encoder, choose_device(job.settings.device), job.image_size)
    if encoder.takes != "images":
        raise InputError(f"encoder {job.encoder!r} takes {encoder.takes}: {job.data} has images")
    return encoder


def image_side(encoder: Encoder, default: int) -> int:
    """The side in pixels to which large images are resized for an encoder."""
    return encoder.preprocessing.size if isinstance(encoder, ImageEncoder) else default


def encode_source(job: Job, encoder: Encoder, source: Source) -> Source:
    """The source with the vectors of its images in their place; they are computed once and kept on disk."""
    if source.kind != "images":
        raise InputError(f"encoder {job.encoder!r} takes images, but {job.data} has {source.kind}: leave it out")

    def vectors(samples: Samples, what: str) -> NDArray[np.float32]:
        return encoded(encoder, samples, fingerprint(samples), what)

    def part(samples: Samples | None, what: str) -> NDArray[np.float32] | None:
        return None if samples is None else vectors(samples, what)

    assert job.encoder is not None
    changes: dict[str, Any] = {
        "train_images": vectors(source.train_images, "training images"),
        "test_images": part(source.test_images, "test images"),
        "val_images": part(source.val_images, "validation images"),
        "other_tests": {name: (vectors(one, name), labels) for name, (one, labels) in source.other_tests.items()},
    }
    about = Encoding(encoder=job.encoder, about=encoder.describe(), images=source)
    return dataclasses.replace(source, mean=None, std=None, encoding=about, **changes)
