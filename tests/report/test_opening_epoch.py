"""The epoch on which the losses are shown first; histograms are written out so that the eye can judge."""

from typing import Any

import numpy as np
import pytest

from dividemix.report.opening_epoch import opening_epoch

HEAP = [1, 4, 9, 16, 20, 16, 9, 4, 1, 0, 0, 0]
TWO = [2, 12, 20, 12, 3, 1, 1, 4, 9, 12, 8, 2]
BAR = [60, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0]


def divisions(**counts: list[int]) -> list[dict[str, Any]]:
    """Divisions of two networks in epochs e1, e2, ..."""
    return [{"epoch": int(name[1:]), "net": net, "counts": values} for name, values in counts.items() for net in (0, 1)]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (divisions(e3=HEAP, e4=TWO, e5=BAR), 4),
        (divisions(e3=TWO, e4=BAR, e5=BAR), 3),
        (divisions(e3=HEAP, e4=BAR, e5=TWO), 5),
        (divisions(e7=HEAP, e8=HEAP), 7),
        (divisions(e7=[0] * 12, e8=[5]), 7),
        ([], None),
    ],
)
def test_it_is_the_one_that_shows_two_groups(given: list[dict[str, Any]], expected: int | None) -> None:
    assert opening_epoch(given) == expected


def test_one_bar_with_a_long_tail_of_noise_does_not_win() -> None:
    """Small ripples next to a high bar are no second group."""
    rng = np.random.default_rng(0)
    ripples = [5000, *rng.integers(0, 12, 49).tolist()]
    assert opening_epoch(divisions(e2=(np.array(TWO) * 50).tolist(), e9=ripples)) == 2
