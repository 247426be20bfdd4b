"""The words of a text that speak for the suggested label and against the given one: by leaving them out.

A part counts by how much log p(suggested) - log p(given) falls without it. A part is a word; of a long text, a few
words that follow each other.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dividemix.data.words import word_pattern

Span = tuple[int, int]  # first character, and the one after the last
_MOST_MARKS = 5  # of a text
_LEAST = 0.3  # a marked part counts at least this share of what the first one does


def marked_words(
    texts: Sequence[str],
    given: NDArray[np.int64],
    suggested: NDArray[np.int64],
    predict_proba: Callable[[list[str]], NDArray[Any]],
    *,
    most_parts: int,
) -> list[list[Span]]:
    """For each text the parts that count most, in their order; none of a text of one word.

    A text is divided into at most `most_parts` parts. `predict_proba` gives the probabilities (N, C) of N texts.
    """
    divided = [parts_of(text, most_parts) for text in texts]
    changed = [text[:start] + text[stop:] for text, spans in zip(texts, divided, strict=True) for start, stop in spans]
    if not changed:
        return [[] for _ in texts]
    owner = np.repeat(np.arange(len(texts)), [len(spans) for spans in divided])
    with_all, without = (
        _evidence(predict_proba(samples), given[index], suggested[index])
        for samples, index in ((list(texts), np.arange(len(texts))), (changed, owner))
    )
    falls = with_all[owner] - without
    return [_strongest(spans, falls[owner == i]) for i, spans in enumerate(divided)]


def parts_of(text: str, most: int) -> list[Span]:
    """The words of a text, or at most `most` groups of them; nothing if leaving one out would leave no word."""
    words = [found.span() for found in re.finditer(word_pattern(), text)]
    size = -(-len(words) // most) if words else 1
    groups = [words[first : first + size] for first in range(0, len(words), size)]
    return [(group[0][0], group[-1][1]) for group in groups] if len(groups) > 1 else []


def _evidence(probs: NDArray[Any], given: NDArray[np.int64], suggested: NDArray[np.int64]) -> NDArray[np.float64]:
    """The evidence of each row: log p(suggested) - log p(given)."""
    rows, logs = np.arange(len(probs)), np.log(np.maximum(probs.astype(np.float64), 1e-12))
    evidence: NDArray[np.float64] = logs[rows, suggested] - logs[rows, given]
    return evidence


def _strongest(spans: list[Span], falls: NDArray[np.float64]) -> list[Span]:
    """The spans whose absence makes the evidence fall most."""
    order = np.argsort(-falls, kind="stable")[:_MOST_MARKS].tolist()
    kept = [spans[i] for i in order if falls[i] > 0 and falls[i] >= _LEAST * falls[order[0]]]
    return sorted(kept)
