"""A source from samples in memory, or mapped from a file, and the names of their classes."""

from collections.abc import Sequence
from typing import Any

from dividemix.data.classes import natural_sorted, numbered
from dividemix.data.source import Samples, Source


def labelled(
    name: str,
    samples: Samples,
    labels: Sequence[str],
    *,
    true_labels: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
    where: str = "",
    **known: Any,
) -> Source:
    """The samples (N, ...) with the names of their classes; `known` is what else a Source has.

    Without `classes`, the classes are those that the labels name, in natural order. Raises InputError, starting with
    `where`, if a name is not a class.
    """
    order = classes or natural_sorted(set(labels))
    return Source(
        name=name,
        classes=tuple(order),
        train_samples=samples,
        train_labels=numbered(labels, order, f"{where}labels"),
        true_labels=None if true_labels is None else numbered(true_labels, order, f"{where}true_labels"),
        **known,
    )
