"""The data of a run, read as its job says: training data, test data, and the true labels that only scoring sees."""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dividemix.data.classes import Label, class_labels
from dividemix.data.common_shape import LARGE
from dividemix.data.dataset import ArrayData
from dividemix.data.features import FeatureData, feature_statistics
from dividemix.data.noise import NoiseSpec, NoisyLabels, parse_noise
from dividemix.data.pixel_statistics import pixel_statistics
from dividemix.data.readers import with_samples_of
from dividemix.data.source import Encoding, Kind, Samples, Skipped, Source
from dividemix.data.votes import Votes
from dividemix.encoders.encoder import Encoder
from dividemix.encoders.tokens import is_tokens
from dividemix.engine.divided_reading import divided_reading
from dividemix.errors import InputError
from dividemix.methods.method import TrainingSets
from dividemix.planning.data_digest import Labelled, data_digest
from dividemix.planning.encoding import encode_source, encoder_of, image_side
from dividemix.planning.held_out import held_out
from dividemix.planning.job import Job
from dividemix.planning.noisy import with_noise
from dividemix.planning.reading import check_reading, columns_of, data_reader
from dividemix.stored import digest_of

SampleData = ArrayData | FeatureData
_NONE_HELD_OUT = (
    "holdout is {:g}, but no sample is held out: every class has too few samples, or too many copies of each"
)


@dataclass(frozen=True, eq=False)
class Material:
    """Data of a run: N samples with given labels, n of which train.

    `true_labels` (N,) is None if they are unknown, -1 for a sample of no class; `noise` is None if none was added.
    """

    classes: tuple[str, ...]
    class_labels: tuple[Label, ...]  # the classes as labels of the type that was given
    kind: Kind
    shape: tuple[int, ...]  # of a sample: (H, W, channels) of an image, (D,) of a vector
    mean: Sequence[float]  # of each channel, or of each number of a vector
    std: Sequence[float]
    everything: SampleData
    train: SampleData
    trusted: SampleData | None  # samples whose labels are right, for methods that need some
    train_index: NDArray[np.int64]  # (n,): the indices of the training samples among all
    holdout: SampleData | None  # samples that choose the epoch to keep: held out, or a clean validation set
    clean_holdout: bool
    has_copies: bool  # whether some samples are equal; not looked for if none is to be held out
    test: SampleData | None
    other_tests: dict[str, SampleData]
    true_labels: NDArray[np.int64] | None
    noise: NoisyLabels | None
    paths: tuple[str, ...] | None
    rows: NDArray[np.int64]  # (N,): the samples' positions in the data as given (Source.rows)
    num_given: int  # samples in the data as given, used or not
    votes: Votes | None  # on the N samples, if several annotators labelled them
    skipped: tuple[Skipped, ...]
    encoding: Encoding | None  # of vectors that an encoder computed
    feature_names: tuple[str, ...] | None  # (D,) of vectors from a table with named columns
    notes: tuple[str, ...]  # what the user should know about how the data was read
    digest: str  # of images, labels and classes: equal for equal data

    @property
    def given_kind(self) -> Kind:
        """What the samples are as given: images, texts or rows may have become vectors."""
        return self.kind if self.encoding is None else self.encoding.source.kind

    @property
    def sets(self) -> TrainingSets:
        """What a method trains on."""
        return TrainingSets(self.train, self.trusted)

    @property
    def tests(self) -> dict[str, SampleData]:
        """All sets to test on, by name; the first is "test", where there is one."""
        return ({} if self.test is None else {"test": self.test}) | self.other_tests

    @property
    def texts(self) -> tuple[str, ...] | None:
        """The texts (N,) that the vectors were computed from; None for other samples."""
        if self.encoding is None or self.encoding.source.kind != "texts":
            return None
        return tuple(np.asarray(self.encoding.source.train_samples).tolist())

    @property
    def space(self) -> Tensor | None:
        """The vectors (N, D), where near means alike: not of images, nor of tokens."""
        has_scale = self.encoding is None or not is_tokens(self.encoding.encoder)
        return self.everything.features if isinstance(self.everything, FeatureData) and has_scale else None

    @property
    def table(self) -> NDArray[Any] | None:
        """The rows (N,) of a table that the vectors were computed from; None for other samples."""
        if self.encoding is None or self.encoding.source.kind != "rows":
            return None
        return np.asarray(self.encoding.source.train_samples)

    @property
    def unseen(self) -> NDArray[np.int64]:
        """The indices of the samples that are not trained on."""
        return np.setdiff1d(np.arange(len(self.everything.labels)), self.train_index)

    @property
    def split(self) -> str:
        """A digest of the indices of the training samples."""
        return digest_of(self.train_index.astype("<i8").tobytes())

    @property
    def labels(self) -> NDArray[np.int64]:
        """Given labels (N,)."""
        labels: NDArray[np.int64] = self.everything.labels.cpu().numpy()
        return labels


def read(job: Job, *, large_size: int = LARGE) -> Source:
    """The job's data, without noise; large images get `large_size` if the job has no image_size."""
    check_reading(job)  # before an encoder is loaded
    encoder = encoder_of(job)
    return prepared(data_reader(job, image_side(encoder, large_size) if encoder else large_size)(), job, encoder)


def prepared(source: Source, job: Job, encoder: Encoder | None = None) -> Source:
    """The samples that the job keeps of a source, as vectors if it has an encoder."""
    source, encoder = reduced(source, job), encoder or encoder_of(job)
    is_encoded = job.encoder is not None or source.kind in ("texts", "rows")
    return encode_source(job, encoder, source) if is_encoded else source


def reduced(source: Source, job: Job) -> Source:
    """The source with the samples that the job keeps of it."""
    if job.imbalance is not None:
        source = source.long_tail(job.imbalance)
    if job.limit_train is not None:
        source = source.limit_train(job.limit_train)
    return source if job.limit_test is None else source.limit_test(job.limit_test)


def gather(
    job: Job, device: torch.device, source: Source | None = None, noise_spec: NoiseSpec | None = None
) -> Material:
    """Read the job's data, unless it comes as `source`; add its noise, put it on the device, hold samples out.

    `noise_spec` replaces the job's noise: the same labels from another file. Raises InputError if any of it is wrong.
    """
    spec = noise_spec or parse_noise(job.noise)
    source = source or read(job)
    source, labels, true_labels, noise = with_noise(job, source, spec)
    mean, std, hold, hold_to_train = _holders(job, source, device)
    everything = hold_to_train(source.train_samples, labels)
    if isinstance(everything, FeatureData) and source.encoding is not None:
        everything.pictures = source.encoding.source.train_samples if source.encoding.source.kind == "images" else None
    holdout_index, has_copies = held_out(source, labels, job.holdout, seed=job.settings.seed)
    train_index = np.setdiff1d(np.arange(len(labels)), holdout_index)
    is_missed = job.holdout > 0 and not len(holdout_index)
    holdout = everything.subset(holdout_index) if len(holdout_index) else None
    if source.val_samples is not None and source.val_labels is not None:
        if job.holdout:
            raise InputError(
                f"holdout is {job.holdout:g}: {job.data} has its own validation {source.kind}; set holdout to 0"
            )
        holdout = hold(source.val_samples, source.val_labels)
    trusted, test = _read_trusted(job, source), None
    if source.test_samples is not None and source.test_labels is not None:
        test = hold(source.test_samples, source.test_labels)
    return Material(
        classes=source.classes,
        class_labels=class_labels(source.classes, source.label_type),
        kind=source.kind,
        shape=tuple(source.train_samples.shape[1:]),
        mean=mean,
        std=std,
        everything=everything,
        train=everything.subset(train_index) if len(holdout_index) else everything,
        trusted=None if trusted is None else hold_to_train(*trusted),
        train_index=train_index,
        holdout=holdout,
        clean_holdout=source.val_samples is not None,
        has_copies=has_copies,
        test=test,
        other_tests={name: hold(images, labels) for name, (images, labels) in source.other_tests.items()},
        true_labels=true_labels,
        noise=noise,
        paths=source.paths,
        rows=source.rows,
        num_given=source.num_given,
        votes=source.votes,
        skipped=source.skipped,
        encoding=source.encoding,
        feature_names=source.feature_names,
        notes=(*source.notes, *([_NONE_HELD_OUT.format(job.holdout)] if is_missed else [])),
        digest=data_digest(source, labels, true_labels, trusted),
    )


_Holder = Callable[[Samples, NDArray[np.int64]], SampleData]


def _holders(
    job: Job, source: Source, device: torch.device
) -> tuple[Sequence[float], Sequence[float], _Holder, _Holder]:
    """Mean and deviation of the training samples, and what holds samples: to test on, and to train on."""
    s = job.settings
    if source.kind == "vectors":
        means, stds = feature_statistics(np.asarray(source.train_samples))
        if source.encoding is not None and source.encoding.source.kind == "texts":
            # One scale for all: the last directions of an SVD are noise, which must not become as large as the first.
            stds = np.full_like(stds, np.sqrt(np.mean(stds**2)))
        if source.encoding is not None and is_tokens(source.encoding.encoder):
            means, stds = np.zeros_like(means), np.ones_like(stds)
            s = dataclasses.replace(s, noise_std=0.0)
        vectors: Any = partial(FeatureData, mean=means, std=stds, device=device)
        return means.tolist(), stds.tolist(), vectors, partial(vectors, noise_std=s.noise_std)
    height, width, _ = source.train_samples.shape[1:]
    if s.crop_size > min(height, width):
        raise InputError(
            f"crop_size is {s.crop_size}: the images are {height} x {width} pixels; set a smaller crop_size or a larger"
            " image_size"
        )
    if s.crop_padding > max(height, width):
        raise InputError(
            f"crop_padding is {s.crop_padding}: the images are {height} x {width} pixels; set a smaller one"
        )
    mean, std = source.mean, source.std
    if mean is None or std is None:
        mean, std = pixel_statistics(source.train_samples)
    about: dict[str, Any] = {"crop_size": s.crop_size, "device": device, "reading": divided_reading}
    images: Any = partial(ArrayData, mean=mean, std=std, **about)
    views: dict[str, Any] = {"crop_padding": s.crop_padding, "crop_border": s.crop_border}
    return mean, std, images, partial(images, **views, flip=s.flip, cutout=s.cutout)


def _read_trusted(job: Job, source: Source) -> Labelled | None:
    """The job's trusted images and labels, in the size and with the classes of the source; None without any."""
    if job.trusted is None:
        return None
    if source.encoding is not None:
        raise InputError("trusted cannot be used with an encoder yet: encode both yourself, and train on the vectors")
    bare = dataclasses.replace(source, test_samples=None, test_labels=None)
    try:
        whole = with_samples_of(bare, job.trusted, columns=columns_of(job), memory_gb=job.memory_gb)
    except InputError as error:
        raise InputError(f"trusted is {job.trusted!r}: {str(error).removeprefix(f'{job.trusted!r}: ')}") from error
    assert whole.test_samples is not None
    assert whole.test_labels is not None
    return whole.test_samples, whole.test_labels
