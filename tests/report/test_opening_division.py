"""The division that is shown first; histograms are written out so that the eye can judge."""

from typing import Any

import numpy as np
import pytest

from dividemix.report.opening_division import opening_division

HEAP = [0, 0, 1, 2, 4, 6, 9, 13, 16, 19, 20, 19, 16, 13, 9, 6, 4, 2, 1, 0, 0, 0, 0, 0]
TWO = [2, 7, 12, 17, 20, 17, 12, 7, 3, 1, 0, 0, 0, 1, 2, 4, 7, 9, 11, 12, 10, 7, 3, 1]
BAR = [60, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0]


def divisions(**counts: list[int]) -> list[dict[str, Any]]:
    """Divisions of networks 0 and 1 in epochs: e3n0 is that of network 0 in epoch 3."""
    return [{"epoch": int(name[1:-2]), "net": int(name[-1]), "counts": values} for name, values in counts.items()]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (divisions(e3n0=HEAP, e3n1=HEAP, e4n0=TWO, e4n1=HEAP, e5n0=BAR, e5n1=BAR), (4, 0)),
        (divisions(e3n0=HEAP, e3n1=TWO, e14n0=BAR, e14n1=BAR), (3, 1)),
        (divisions(e3n0=HEAP, e3n1=HEAP, e14n0=BAR, e14n1=TWO), (14, 1)),
        (divisions(e8n0=HEAP, e7n1=HEAP, e7n0=HEAP), (7, 0)),
        (divisions(e7n0=[0] * 12, e8n0=[5]), (7, 0)),
        ([], None),
    ],
)
def test_it_is_the_one_that_shows_two_groups(given: list[dict[str, Any]], expected: tuple[int, int] | None) -> None:
    assert opening_division(given) == expected


def test_ripples_of_few_samples_are_no_second_group() -> None:
    """Neither on a heap nor next to a high bar."""
    rng = np.random.default_rng(0)
    heap = np.histogram(rng.normal(0.3, 0.12, 400).clip(0, 1), 50, (0, 1))[0].tolist()
    ripples = [500, *rng.integers(0, 4, 49).tolist()]
    two = np.histogram(np.append(rng.normal(0.2, 0.07, 300), rng.normal(0.6, 0.1, 100)).clip(0, 1), 50, (0, 1))[0]
    assert opening_division(divisions(e2n0=heap, e3n0=two.tolist(), e9n0=ripples)) == (3, 0)
