"""A source of images, texts or rows turned into one of vectors, by the encoder that a job names, or a fitted one."""

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dividemix.data.image_files import fingerprint
from dividemix.data.source import Encoding, Samples, Source
from dividemix.data.texts import texts_fingerprint
from dividemix.encoders.columns import ColumnsEncoder
from dividemix.encoders.encode import encoded
from dividemix.encoders.encoder import Encoder, ImageEncoder
from dividemix.encoders.find import find_encoder
from dividemix.encoders.tfidf import TfidfEncoder
from dividemix.engine.device import choose_device
from dividemix.errors import InputError
from dividemix.foreign import TFIDF
from dividemix.planning.job import Job


def encoder_of(job: Job) -> Encoder | None:
    """The job's pretrained encoder, loaded; None if it names none. Raises InputError if it cannot be had."""
    if job.encoder_name in (None, TFIDF):
        return None
    return find_encoder(str(job.encoder_name), choose_device(job.settings.device), job.image_size)


def image_side(encoder: Encoder, default: int) -> int:
    """The side in pixels to which large images are resized for an encoder."""
    return encoder.preprocessing.size if isinstance(encoder, ImageEncoder) else default


def encode_source(job: Job, encoder: Encoder | None, source: Source) -> Source:
    """The source with the vectors of its images, texts or rows in their place.

    Those of a pretrained encoder are computed once and kept on disk. Texts without one get TF-IDF, and rows
    `ColumnsEncoder`: both are fitted on the training samples. Raises InputError if the encoder takes other samples.
    """
    fitted: TfidfEncoder | ColumnsEncoder | None = None
    train_vectors: NDArray[np.float32] | None = None  # if fitting gives them
    if encoder is None and job.encoder is None and source.kind == "rows":
        encoder = fitted = ColumnsEncoder.fitted(np.asarray(source.train_samples))
    elif encoder is None:
        if source.kind != "texts":
            raise InputError(f"encoder {TFIDF!r} takes texts, but {job.data} has {source.kind}: leave it out")
        encoder, found = TfidfEncoder.fitted(np.asarray(source.train_samples).tolist())
        fitted, train_vectors = encoder, found.numpy()
    if encoder.takes != source.kind:
        raise InputError(f"encoder {job.encoder!r} takes {encoder.takes}, but {job.data} has {source.kind}")

    def vectors(samples: Samples, what: str) -> NDArray[np.float32]:
        if fitted is not None:
            return fitted.encode(samples).numpy()
        if source.kind == "texts":
            texts = np.asarray(samples)
            return encoded(encoder, texts.tolist(), texts_fingerprint(texts), what)
        return encoded(encoder, samples, fingerprint(samples), what)

    def part(samples: Samples | None, what: str) -> NDArray[np.float32] | None:
        return None if samples is None else vectors(samples, what)

    if train_vectors is None:
        train_vectors = vectors(source.train_samples, f"training {source.kind}")
    changes: dict[str, Any] = {
        "train_samples": train_vectors,
        "test_samples": part(source.test_samples, f"test {source.kind}"),
        "val_samples": part(source.val_samples, f"validation {source.kind}"),
        "other_tests": {name: (vectors(one, name), labels) for name, (one, labels) in source.other_tests.items()},
    }
    about = encoder.describe()
    encoding = Encoding(encoder=job.encoder_name or about["name"], about=about, source=source, fitted=fitted)
    return dataclasses.replace(source, mean=None, std=None, encoding=encoding, **changes)
