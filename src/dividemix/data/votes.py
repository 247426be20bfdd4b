"""The votes of several annotators on samples, and the consensus that becomes the given label.

Shapes: N samples, A annotators, V options (the classes that were voted for).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dividemix.data.classes import natural_sorted
from dividemix.data.dawid_skene import dawid_skene
from dividemix.data.krippendorff import krippendorff_alpha
from dividemix.errors import InputError

_MOST_NUMBERS = 250_000_000  # of a matrix: two gigabytes


@dataclass(frozen=True, eq=False)
class Votes:
    """Who voted for what."""

    annotators: tuple[str, ...]  # Names of the A annotators
    options: tuple[str, ...]  # Names of the V classes that were voted for
    choices: NDArray[np.int64]  # (N, A): positions in `options`; -1: no vote
    confidence: NDArray[np.float64]  # (N,): probability of the consensus
    accuracy: NDArray[np.float64]  # (A,): estimated share of an annotator's votes that are right

    def subset(self, index: NDArray[np.int64] | Sequence[int]) -> "Votes":
        """The votes on the samples of index (n,)."""
        return replace(self, choices=self.choices[index], confidence=self.confidence[index])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The votes as arrays of an .npz file."""
        return {f"vote_{name}": np.array(value) for name, value in vars(self).items()}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, NDArray[Any]], num_samples: int) -> "Votes":
        """The votes that `arrays` made. Raises ValueError if an array is missing or does not fit the others."""
        given = {name.removeprefix("vote_"): array for name, array in arrays.items() if name in VOTE_ARRAYS}
        if missing := sorted({name.removeprefix("vote_") for name in VOTE_ARRAYS} - given.keys()):
            raise ValueError(f"vote_{missing[0]} is missing")
        names, options = given["annotators"], given["options"]
        shapes = {"annotators": names.shape[:1], "options": options.shape[:1]}
        shapes |= {"choices": (num_samples, len(names)), "confidence": (num_samples,), "accuracy": (len(names),)}
        kinds = {"annotators": "U", "options": "U", "choices": "i", "confidence": "f", "accuracy": "f"}
        for name, array in given.items():
            if array.ndim == 0 or array.shape != shapes[name] or array.dtype.kind != kinds[name]:
                raise ValueError(f"vote_{name} is {array.dtype} of shape {array.shape}")
        choices = given["choices"].astype(np.int64)
        if choices.size and not -1 <= choices.min() <= choices.max() < len(options):
            raise ValueError(f"vote_choices are from {choices.min()} to {choices.max()}")
        return cls(tuple(names.tolist()), tuple(options.tolist()), choices, given["confidence"], given["accuracy"])

    @property
    def alpha(self) -> float | None:
        """Krippendorff's alpha."""
        return krippendorff_alpha(self.choices, len(self.options))

    @property
    def num_disputed(self) -> int:
        """Samples on which not all votes are the same."""
        highest = self.choices.max(axis=1, initial=-1)
        lowest = np.where(self.choices < 0, len(self.options), self.choices).min(axis=1, initial=len(self.options))
        return int((lowest < highest).sum())

    def counted(self, sample: int) -> str:
        """The votes on a sample in words, most frequent first: "cat 2, dog 1"."""
        counts = Counter(choice for choice in self.choices[sample].tolist() if choice >= 0)
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        return ", ".join(f"{self.options[choice]} {count}" for choice, count in ranked)

    def describe(self) -> str:
        """A line for the user."""
        alpha = "unknown" if self.alpha is None else f"{self.alpha:.2f}"
        return (
            f"{int((self.choices >= 0).sum()):,} votes of {len(self.annotators):,} annotators on"
            f" {len(self.choices):,} samples, {self.num_disputed:,} of them disputed; Krippendorff's alpha {alpha};"
            " labels are their consensus (Dawid and Skene)"
        )


def consensus(
    votes: Sequence[Mapping[str, str]], annotators: Sequence[str] | None = None
) -> tuple[list[str | None], Votes]:
    """The most probable class of each sample, None without votes, and the votes.

    `votes` has a mapping from annotator to class for each sample. `annotators` gives their order; without it, it is
    the natural order of their names.

    Raises:
        InputError: if the annotators and classes are so many that their matrices would take gigabytes.
    """
    names = natural_sorted({name for one in votes for name in one}) if annotators is None else annotators
    options = natural_sorted({label for one in votes for label in one.values()})
    place = {name: number for number, name in enumerate(names)}
    number_of = {label: number for number, label in enumerate(options)}
    _check_size(len(votes), len(names), len(options))
    choices = np.full((len(votes), len(names)), -1, dtype=np.int64)
    for sample, one in enumerate(votes):
        for name, label in one.items():
            choices[sample, place[name]] = number_of[label]
    estimate = dawid_skene(choices, max(len(options), 1))
    decided = estimate.probs.argmax(axis=1)
    has_votes: NDArray[np.bool_] = np.any(choices >= 0, axis=1)
    labels = [options[number] if known else None for number, known in zip(decided, has_votes, strict=True)]
    voted_on, who = np.nonzero(choices >= 0)
    right = np.bincount(who, estimate.probs[voted_on, choices[voted_on, who]], minlength=len(names))
    accuracy = right / np.maximum(np.bincount(who, minlength=len(names)), 1)
    confidence = np.where(has_votes, estimate.probs.max(axis=1, initial=0.0), 0.0)
    return labels, Votes(tuple(names), tuple(options), choices, confidence, accuracy)


def _check_size(num_samples: int, num_annotators: int, num_options: int) -> None:
    """Raise InputError if a matrix has too many numbers: a column of names, taken for votes, has as many as rows."""
    largest = max(num_samples * num_annotators, num_samples * num_options, 4 * num_annotators * num_options**2)
    if largest > _MOST_NUMBERS:
        raise InputError(
            f"{num_annotators:,} annotators voted for {num_options:,} classes on {num_samples:,} samples: too many to"
            " estimate who is right: name the columns of votes and of annotators, and no others"
        )


VOTE_ARRAYS = tuple(f"vote_{field.name}" for field in fields(Votes))
