"""What every reader returns: images or vectors, and labels, checked once, here.

Shapes: N samples, H x W pixels, K channels (1 or 3), D numbers of a vector, C classes.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dividemix.data.classes import LabelType, check_text
from dividemix.data.image_files import ImageFiles
from dividemix.data.subset import limited, long_tailed
from dividemix.data.table_rows import check_rows, is_rows
from dividemix.data.texts import check_texts
from dividemix.data.vectors import check_vectors
from dividemix.data.votes import Votes
from dividemix.errors import InputError

Images = NDArray[np.uint8]
Labels = NDArray[np.int64]
Samples: TypeAlias = NDArray[Any] | ImageFiles
"""Images (N, H, W, K) of uint8, in memory or in their files; or vectors (N, D) of numbers; or texts (N,); or rows
(N,) of a table."""
Kind = Literal["images", "vectors", "texts", "rows"]


@dataclass(frozen=True)
class Skipped:
    """A part of the data that was skipped: its path as the user knows it, and the reason."""

    path: str
    reason: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Encoding:
    """Where vectors come from: the samples that they were computed from, and the encoder that did it."""

    encoder: str  # The name of the encoder
    about: Mapping[str, Any]  # What identifies it: its weights by their digest, its preprocessing
    source: "Source"
    fitted: Any = None  # The encoder itself, if it was fitted on the training samples


@dataclass(frozen=True, kw_only=True, eq=False)
class Source:
    """A data set as it was given: training samples with labels that may be wrong, and what else is known.

    The samples of all sets are of one kind.
    """

    name: str
    """A built-in name ("fashion", "cifar10", ...), or the name of a folder, or of a file without its extension."""
    classes: tuple[str, ...]  # Names of the C classes
    label_type: LabelType = "text"  # What labels of a Python program were; predictions have the same type
    has_names: bool = False  # Whether labels were text, or classes were named: then they are no measurements
    train_samples: Samples  # images (N, H, W, K), vectors (N, D), or texts or rows (N,)
    train_labels: Labels  # (N,): given labels, in [0, C)
    test_samples: Samples | None = None
    test_labels: Labels | None = None
    val_samples: Samples | None = None
    """Validation samples, which select the epoch to keep. All samples have the shape of the training samples."""
    val_labels: Labels | None = None  # Their labels, which are clean
    other_tests: Mapping[str, tuple[Samples, Labels]] = dataclasses.field(default_factory=dict)
    """More test sets, images and labels, by the name of their results."""
    true_labels: Labels | None = None  # (N,): ground truth of the training samples, if known; for scoring only
    similar: Mapping[int, int] | None = None
    """Class -> the class it is mistaken for, for asymmetric noise; classes without one are absent."""
    mean: tuple[float, ...] | None = None
    """(K,): channel means of images scaled to [0, 1]; None: computed from the training images."""
    std: tuple[float, ...] | None = None  # (K,): channel standard deviations, as `mean`
    paths: tuple[str, ...] | None = None
    """(N,): names of the training samples as the user knows them, relative to the folder or table."""
    rows: NDArray[np.int64] = None  # type: ignore[assignment]  # never None once made
    """(N,): position of each training sample in the data as it was given, from 0: the row of a table, the index into a
    list or an array, the position among the images of a folder. None: they are all of the data."""
    num_given: int = None  # type: ignore[assignment]  # as rows
    """Number of samples in the data as it was given, used or not. None: up to the last one used."""
    votes: Votes | None = None  # On the N training samples, if several annotators labelled them
    skipped: tuple[Skipped, ...] = ()  # What was skipped because it could not be used
    notes: tuple[str, ...] = ()  # What the user should know about how the data was read, one line each
    encoding: Encoding | None = None  # Of vectors that an encoder computed
    text_column: str | None = None  # The column of a program's table that has the texts
    feature_names: tuple[str, ...] | None = None  # (D,): The columns of a program's table that has the vectors
    median_size: tuple[float, float] | None = None
    """Median height and width of the training images before they were resized; None for arrays."""

    def __post_init__(self) -> None:
        """Check everything that could be wrong with a user's data (InputError), and convert labels to int64."""
        name, num_classes = self.name, len(self.classes)
        if num_classes < 2:
            raise InputError(f"{name}: has {num_classes} classes, at least two are needed")
        check_text(self.classes, f"{name}: classes")
        check_text(self.paths or (), f"{name}: paths")
        check_samples(self.train_samples, f"{name}: train_{self.kind}")
        num_train = len(self.train_samples)
        labels = as_labels(self.train_labels, f"{name}: train_labels", num_train, num_classes)
        if labels.min() == labels.max():
            raise InputError(f"{name}: all training labels are {labels[0]}, at least two classes are needed")
        object.__setattr__(self, "train_labels", labels)
        if self.true_labels is not None:
            labels = as_labels(self.true_labels, f"{name}: true_labels", num_train, num_classes)
            object.__setattr__(self, "true_labels", labels)
        assert self.paths is None or len(self.paths) == num_train
        if self.rows is None:
            object.__setattr__(self, "rows", np.arange(num_train))
        if self.num_given is None:
            object.__setattr__(self, "num_given", int(self.rows.max()) + 1)
        assert self.rows.shape == (num_train,)
        assert self.votes is None or len(self.votes.choices) == num_train
        assert 0 <= self.rows.min() <= self.rows.max() < self.num_given
        for part in ("test", "val"):
            samples, labels = getattr(self, f"{part}_samples"), getattr(self, f"{part}_labels")
            object.__setattr__(self, f"{part}_labels", self._checked_labels(samples, labels, part))
        for part, (samples, labels) in self.other_tests.items():
            self._checked_labels(samples, labels, part)

    @property
    def kind(self) -> Kind:
        """What the samples are."""
        return kind_of(self.train_samples)

    @property
    def in_memory(self) -> bool:
        """Whether all images are arrays, so no files are decoded during training."""
        others = (images for images, _ in self.other_tests.values())
        held = (self.train_samples, self.test_samples, self.val_samples, *others)
        return not any(isinstance(images, ImageFiles) for images in held)

    @property
    def num_bytes(self) -> int:
        """The size of all images that are arrays; vectors, which can be mapped from a file, do not count."""
        if self.kind != "images":
            return 0
        held = (self.train_samples, self.test_samples, self.val_samples)
        return sum(images.nbytes for images in held if isinstance(images, np.ndarray))

    def _checked_labels(self, samples: Samples | None, labels: Labels | None, part: str) -> Labels | None:
        """Check validation or test samples and return their labels; None if there are none."""
        if samples is None and labels is None:
            return None
        where = f"{self.name}: {part}_{self.kind}"
        if samples is None or labels is None:
            raise InputError(f"{where} and {part}_labels belong together, but only one of them is given")
        check_samples(samples, where, like=self.train_samples)
        return as_labels(labels, f"{self.name}: {part}_labels", len(samples), len(self.classes))

    def limit_train(self, limit: int) -> "Source":
        """The source with the first training samples of each class, about `limit` in all (see `limited`)."""
        return self.subset(limited(self.train_labels, len(self.classes), limit, "limit_train"))

    def limit_test(self, limit: int) -> "Source":
        """The source with the first samples of each class of every test set, about `limit` in each (see `limited`)."""

        def first(samples: Samples, labels: Labels) -> tuple[Samples, Labels]:
            index = limited(labels, len(self.classes), limit, "limit_test")
            return _taken(samples, index), labels[index]

        if self.test_samples is None or self.test_labels is None:
            raise InputError(f"limit_test is {limit}: {self.name} has no test images; leave it out")
        samples, labels = first(self.test_samples, self.test_labels)
        others = {name: first(*other) for name, other in self.other_tests.items()}
        return dataclasses.replace(self, test_samples=samples, test_labels=labels, other_tests=others)

    def long_tail(self, ratio: float) -> "Source":
        """The source with ever fewer training samples of each class: the first has `ratio` times those of the last."""
        return self.subset(long_tailed(self.train_labels, len(self.classes), ratio))

    def subset(self, index: NDArray[np.int64]) -> "Source":
        """The source with the training samples of index (n,) alone."""
        return dataclasses.replace(
            self,
            train_samples=_taken(self.train_samples, index),
            train_labels=self.train_labels[index],
            true_labels=None if self.true_labels is None else self.true_labels[index],
            paths=None if self.paths is None else tuple(self.paths[i] for i in index),
            rows=self.rows[index],
            votes=None if self.votes is None else self.votes.subset(index),
        )


def _taken(samples: Samples, index: NDArray[np.int64]) -> Samples:
    """The samples of index (n,)."""
    return samples.subset(index) if isinstance(samples, ImageFiles) else samples[index]


def kind_of(samples: Samples) -> Kind:
    """What samples are: images, unless they are an array of rows or texts, or an array of two dimensions."""
    if not isinstance(samples, np.ndarray):
        return "images"
    if is_rows(samples):
        return "rows"
    return "texts" if samples.dtype == object else "vectors" if samples.ndim == 2 else "images"


def check_samples(samples: Samples, where: str, like: Samples | None = None) -> None:
    """Raise InputError, starting with `where`, unless these are samples of one kind.

    Test samples must be `like` others, the training samples.
    """
    if like is not None and kind_of(like) != kind_of(samples):
        raise InputError(f"{where} has {kind_of(samples)}, but the training samples are {kind_of(like)}")
    if isinstance(samples, np.ndarray) and is_rows(samples):
        check_rows(samples, where, like if isinstance(like, np.ndarray) else None)
    elif isinstance(samples, np.ndarray) and samples.dtype == object:
        check_texts(samples, where)
    elif isinstance(samples, np.ndarray) and samples.ndim == 2:
        check_vectors(samples, where, None if like is None else like.shape)
    else:
        check_images(samples, where, like)


def check_images(images: Samples, where: str, like: Samples | None = None) -> None:
    """Raise InputError, starting with `where`, unless these are uint8 images (N, H, W, K) with K 1 or 3, none empty.

    There must be at least two training images. Test images must have the size of the training images, which are `like`.
    """
    if images.dtype != np.uint8:
        raise InputError(
            f"{where} has type {images.dtype}: must be uint8, pixels from 0 to 255;"
            " convert from [0, 1] by (x * 255).round().astype('uint8')"
        )
    if len(images.shape) != 4 or images.shape[3] not in (1, 3):
        raise InputError(f"{where} has shape {images.shape}: must be (N, H, W, channels), with 1 or 3 channels")
    if 0 in images.shape:
        raise InputError(f"{where} has shape {images.shape}: has no pixels")
    if like is None and len(images) < 2:
        raise InputError(f"{where} has one image, at least two are needed")
    if like is not None and images.shape[1:] != like.shape[1:]:
        raise InputError(f"{where} has images of {images.shape[1:]}, but the training images are {like.shape[1:]}")


def as_labels(labels: NDArray[Any], where: str, num_samples: int, num_classes: int | None = None) -> Labels:
    """The labels as int64 (N,), from integers in [0, C), or >= 0 without C; else InputError, starting with `where`."""
    if labels.dtype.kind not in "biuf":
        kind = "text" if labels.dtype.kind in "USO" else str(labels.dtype)
        raise InputError(f"{where} has {kind}: labels must be integers >= 0")
    if labels.ndim != 1 or len(labels) != num_samples:
        raise InputError(f"{where} has shape {labels.shape}: must be ({num_samples},), one label for each sample")
    if labels.dtype.kind == "f":
        # NaN fails both comparisons, an infinity the first.
        whole = (np.abs(labels) < 2**31) & (labels == np.rint(labels))
        if not whole.all():
            raise InputError(f"{where} has {labels[~whole][0]}: labels must be integers >= 0")
    low, high = labels.min(), labels.max()
    if low < 0:
        raise InputError(f"{where} has label {int(low)}: labels must be >= 0")
    most = 2**31 if num_classes is None else num_classes
    if high >= most:
        why = f", as there are {most} classes: correct the label, or name all classes" if num_classes else ""
        raise InputError(f"{where} has label {int(high)}: labels must be from 0 to {most - 1}{why}")
    return labels.astype(np.int64)
