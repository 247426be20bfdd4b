"""Subsets of samples. Oracle: slow loops over classes and samples; for long tails, the formula of Cui et al. (2019)."""

import numpy as np
import pytest

from dividemix.data.subset import limited, long_tailed
from dividemix.errors import InputError

RNG = np.random.default_rng(0)


def slow(labels: list[int], sizes: dict[int, int]) -> list[int]:
    """The first samples of each class, one after the other."""
    kept = []
    for position, label in enumerate(labels):
        if sizes.get(label, 0) > 0:
            sizes[label] -= 1
            kept.append(position)
    return kept


@pytest.mark.parametrize("counts", [[5, 5, 5], [900, 90, 10], [1, 1, 998], [7, 0, 3], [1000, 1, 1]])
@pytest.mark.parametrize("limit", [3, 10, 100, 999, 5000])
def test_a_limit_keeps_the_shares_of_the_classes(counts: list[int], limit: int) -> None:
    labels = RNG.permutation(np.repeat(np.arange(len(counts)), counts))
    num_present = sum(count > 0 for count in counts)
    whole = limit // num_present * num_present
    shares = [whole * count / sum(counts) for count in counts]
    sizes = [int(share + 1e-9) for share in shares]
    while sum(sizes) < whole:  # one more for the class that is farthest below its share
        sizes[max(range(len(counts)), key=lambda label: round(shares[label] - sizes[label], 9))] += 1
    sizes = [min(count, max(1, size)) for count, size in zip(counts, sizes, strict=True)]
    index = limited(labels, len(counts), limit, "limit_train")
    assert index.tolist() == slow(labels.tolist(), dict(enumerate(sizes)))
    assert len(np.unique(labels[index])) == num_present
    assert len(index) <= limit + len(counts)


@pytest.mark.parametrize("limit", [10, 25, 99, 100])
def test_of_equal_classes_each_gives_the_same(limit: int) -> None:
    """As it was before classes could differ: the first N // C of each."""
    labels = RNG.permutation(np.repeat(np.arange(10), 10))
    assert limited(labels, 10, limit, "x").tolist() == slow(labels.tolist(), dict.fromkeys(range(10), limit // 10))


def test_a_limit_below_one_for_each_class_is_refused() -> None:
    with pytest.raises(InputError, match="limit_test is 2: must be at least 3, one sample for each class"):
        limited(np.array([0, 1, 2, 2]), 3, 2, "limit_test")


@pytest.mark.parametrize(("ratio", "expected"), [(1, [1000] * 10), (10, None), (100, None)])
def test_a_long_tail(ratio: float, expected: list[int] | None) -> None:
    labels = RNG.permutation(np.repeat(np.arange(10), 1000))
    index = long_tailed(labels, 10, ratio)
    sizes = expected or [int(1000 * (1 / ratio) ** (c / 9) + 1e-9) for c in range(10)]
    assert np.bincount(labels[index]).tolist() == sizes
    assert sizes[0] == 1000
    assert sizes[-1] == 1000 / ratio
    assert index.tolist() == slow(labels.tolist(), dict(enumerate(sizes)))


def test_a_long_tail_keeps_a_sample_of_each_class_and_takes_no_more_than_there_are() -> None:
    labels = np.repeat([0, 1, 2], [50, 3, 4])
    assert np.bincount(labels[long_tailed(labels, 3, 1000)]).tolist() == [50, 1, 1]
    assert np.bincount(labels[long_tailed(labels, 3, 2)]).tolist() == [50, 3, 4]
