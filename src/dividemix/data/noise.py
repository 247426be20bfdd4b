"""Label noise: a pure function of the true labels, a specification and a seed; instance noise also of the samples.

Each call makes its own generator from the seed. Training never uses it, so runs with the same labels, specification and
seed get the same noisy labels, whatever else they do.

Shapes: N samples, C classes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dividemix.data.instance_noise import Samples, mistaken_labels
from dividemix.data.noise_file import Labels, NoisyLabels, compare, load_noise, read_matrix, save_noise
from dividemix.errors import InputError
from dividemix.meant import nearest

__all__ = ["KINDS", "NoiseSpec", "NoisyLabels", "add_noise", "parse_noise", "save_noise"]


@dataclass(frozen=True)
class NoiseSpec:
    """The noise to add: a kind, and the rate or the file that it needs."""

    kind: str  # A key of KINDS
    rate: float = 0.0  # Nominal rate in [0, 1]; unused by the kinds none, matrix and file
    path: Path | None = None  # Only for the kinds matrix and file
    of: str = ""  # Which labels of the kind human; the other data of the kind open_set

    def __post_init__(self) -> None:
        """Raise InputError for an unknown kind, a rate outside [0, 1], and a path that is missing or superfluous."""
        if self.kind not in KINDS:
            raise InputError(f"noise kind {self.kind!r} is unknown: use {', '.join(map(_usage, KINDS))}")
        if not 0 <= self.rate <= 1:
            raise _rate_error(self.kind, self.rate)
        if (self.path is not None) != (self.kind in FILE_KINDS):
            takes = "a file" if self.path is None else "no file"
            raise InputError(f"noise {self.kind} takes {takes}: use {_usage(self.kind)}")
        if bool(self.of) != (self.kind in ("human", "open_set")):
            raise InputError(f"noise {self.kind} is incomplete, or says too much: use {_usage(self.kind)}")

    @property
    def is_read(self) -> bool:
        """Whether the labels come from a file, which may be gone when a run is resumed."""
        return self.kind in (*FILE_KINDS, "human")


def _is_number(text: str) -> bool:
    try:
        return 0 <= float(text) <= 1
    except ValueError:
        return False


def parse_noise(text: str) -> NoiseSpec:
    """The specification of "none", KIND:RATE ("symmetric:0.5") or KIND:FILE ("matrix:flips.csv"); else InputError."""
    kind, _, argument = text.partition(":")
    if kind not in KINDS or (kind == "none" and text != "none"):
        near, known = nearest(kind, KINDS), ", ".join(map(_usage, KINDS))
        if _is_number(text):
            near, argument = "symmetric", text
        meant = f"{near}:{argument}" if near and near != "none" and argument else _usage(near or "none")
        raise InputError(f"noise {text!r} is unknown: {f'did you mean {meant}?' if near else f'use {known}'}")
    if kind == "none":
        return NoiseSpec(kind)
    if not argument:
        raise InputError(f"noise {text!r} is incomplete: use {_usage(kind)}")
    if kind in FILE_KINDS:
        return NoiseSpec(kind, path=Path(argument))
    if kind == "human":
        return NoiseSpec(kind, of=argument)
    of = ""
    if kind == "open_set":
        argument, _, of = argument.partition(":")
    try:
        rate = float(argument)
    except ValueError:
        raise _rate_error(kind, argument) from None
    return NoiseSpec(kind, rate, of=of)


def add_noise(
    true_labels: NDArray[np.integer[Any]],
    spec: NoiseSpec,
    *,
    num_classes: int,
    seed: int,
    similar: Mapping[int, int] | None = None,
    samples: Samples | None = None,
    human: Labels | None = None,
) -> NoisyLabels:
    """The true labels (N,) with noise, drawn from PCG64(seed).

    Equal arguments give equal labels. With one seed, the samples chosen at a lower rate are a subset of those chosen
    at a higher rate (not with kind "instance"). `similar` maps a class to the class it is mistaken for; asymmetric
    noise needs it. Instance noise needs the `samples`, images or vectors. Kind "human" gives the labels `human` (N,).
    Kind "open_set" changes no label: it replaces images (data/open_set.py). Kind "file" draws nothing: kind, rate and
    seed of the result are those of the file. Raises InputError for labels that are not N >= 1 integers in [0, C), fewer
    than two classes, a negative seed, a missing map, missing samples, or a file for other data.
    """
    if num_classes < 2:
        raise InputError(f"noise needs at least two classes, the data has {num_classes}")
    if seed < 0:
        raise InputError(f"the seed of the noise is {seed}: must be an integer >= 0")
    if true_labels.ndim != 1 or true_labels.size == 0 or not np.issubdtype(true_labels.dtype, np.integer):
        raise InputError(
            f"labels are {true_labels.dtype} of shape {true_labels.shape}: noise needs integers of shape (N,), N >= 1"
        )
    low, high = true_labels.min(), true_labels.max()
    if low < 0 or high >= num_classes:
        raise InputError(
            f"labels go from {low} to {high}: with {num_classes} classes, they must be from 0 to {num_classes - 1}"
        )
    task = _Task(true_labels.astype(np.int64), spec, num_classes, similar, samples, human)
    make = KINDS[spec.kind]
    if make is None:
        assert spec.path is not None
        return load_noise(spec.path, task.true_labels, num_classes=num_classes)
    labels, nominal_rate = make(task, np.random.Generator(np.random.PCG64(int(seed))))
    return compare(labels, task.true_labels, num_classes, spec.kind, nominal_rate, int(seed))


@dataclass(frozen=True, eq=False)
class _Task:
    """Checked arguments of `add_noise`."""

    true_labels: Labels
    spec: NoiseSpec
    num_classes: int
    similar: Mapping[int, int] | None
    samples: Samples | None
    human: Labels | None


def _at_rate(propose: Callable[[_Task, np.random.Generator], Labels]) -> "_Kind":
    """Noise that gives exactly round(rate * N) random samples their proposed label (N,)."""

    def noise(task: _Task, rng: np.random.Generator) -> tuple[Labels, float]:
        num_samples = len(task.true_labels)
        chosen = rng.permutation(num_samples) < round(task.spec.rate * num_samples)
        return np.where(chosen, propose(task, rng), task.true_labels), float(task.spec.rate)

    return noise


def _any_class(task: _Task, rng: np.random.Generator) -> Labels:
    """Uniform over all classes, including the true one: with ten classes, a rate of 50 % corrupts 45 % of labels."""
    return rng.integers(task.num_classes, size=len(task.true_labels))


def _other_class(task: _Task, rng: np.random.Generator) -> Labels:
    """Uniform over the other classes, never the true one (the criterion of the paper's Table 6)."""
    steps = rng.integers(1, task.num_classes, size=len(task.true_labels))
    return (task.true_labels + steps) % task.num_classes


def _similar_class(task: _Task, rng: np.random.Generator) -> Labels:
    """The class that each class is mistaken for; without one, samples keep their label, though they count as chosen."""
    if task.similar is None:
        raise InputError(
            "asymmetric noise: this data set does not say which classes are similar: use pair_flip:RATE (each class is"
            " mistaken for the next), or matrix:FILE (rates of your own)"
        )
    target, last = np.arange(task.num_classes), task.num_classes - 1
    for source, mistaken_for in task.similar.items():
        if not (0 <= source <= last and 0 <= mistaken_for <= last):
            raise InputError(f"asymmetric noise maps class {source} to {mistaken_for}: classes are 0 to {last}")
        target[source] = mistaken_for
    return target[task.true_labels]


def _instance(task: _Task, rng: np.random.Generator) -> tuple[Labels, float]:
    """Labels that are wrong by what the samples look like (instance_noise.py)."""
    if task.samples is None:
        raise InputError("instance noise depends on the samples, and only labels were given: pass samples")
    rate = float(task.spec.rate)
    return mistaken_labels(task.true_labels, task.samples, rate, task.num_classes, rng), rate


def _matrix(task: _Task, rng: np.random.Generator) -> tuple[Labels, float]:
    """Draw each label from the row T[i] = P(given | true i) of its class, by inverting the row's cumulative sum."""
    assert task.spec.path is not None
    matrix = read_matrix(task.spec.path, task.num_classes)
    cumulative = matrix.cumsum(axis=1)
    cumulative /= cumulative[:, -1:]  # ends at exactly 1, above every draw, so no index is past the last class
    draws = rng.random(len(task.true_labels))
    labels = np.empty_like(task.true_labels)
    for true_class in range(task.num_classes):
        members = task.true_labels == true_class
        labels[members] = np.searchsorted(cumulative[true_class], draws[members], side="right")
    return labels, float(np.mean(1 - matrix.diagonal()[task.true_labels]))


def _human(task: _Task, rng: np.random.Generator) -> tuple[Labels, float]:
    """Labels that people gave: nothing is drawn, and nobody asked for a rate."""
    assert task.human is not None
    return task.human, float(np.mean(task.human != task.true_labels))


def _usage(kind: str) -> str:
    words = {"none": "none", "human": "human:worst", "open_set": "open_set:RATE:DATA"}
    return words.get(kind, f"{kind}:{'FILE' if kind in FILE_KINDS else 'RATE'}")


def _rate_error(kind: str, rate: object) -> InputError:
    percent = f"; for {rate:g} % write {rate / 100:g}" if isinstance(rate, float) and 2 <= rate <= 100 else ""
    return InputError(f"the rate of {kind} noise is {rate!r}: must be a number from 0 to 1, as in {kind}:0.4{percent}")


FILE_KINDS = ("matrix", "file")

_Kind = Callable[[_Task, np.random.Generator], tuple[Labels, float]]  # the labels, and their nominal rate

KINDS: dict[str, _Kind | None] = {
    "none": lambda task, rng: (task.true_labels, 0.0),
    "symmetric": _at_rate(_any_class),
    "symmetric_other": _at_rate(_other_class),
    "asymmetric": _at_rate(_similar_class),
    "pair_flip": _at_rate(lambda task, rng: (task.true_labels + 1) % task.num_classes),
    "instance": _instance,
    "human": _human,
    "open_set": lambda task, rng: (task.true_labels, float(task.spec.rate)),
    "matrix": _matrix,
    "file": None,  # the labels are in the file
}
