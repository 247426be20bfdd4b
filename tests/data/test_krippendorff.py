"""Krippendorff's alpha. Oracles: a published example, and the definition as slow loops over pairs of votes."""

import numpy as np
import pytest

from dividemix.data.krippendorff import krippendorff_alpha

# The example of Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011): four observers, twelve units.
_ = -1
PUBLISHED = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
        [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
    ]
).T


def slow(votes: list[list[int]]) -> float | None:
    """One minus observed over expected disagreement, pair by pair."""
    units = [[vote for vote in row if vote >= 0] for row in votes]
    units = [unit for unit in units if len(unit) > 1]
    together = [vote for unit in units for vote in unit]
    observed = 0.0
    for unit in units:
        pairs = [(a, b) for i, a in enumerate(unit) for j, b in enumerate(unit) if i != j]
        observed += sum(a != b for a, b in pairs) / (len(unit) - 1)
    pairs = [(a, b) for i, a in enumerate(together) for j, b in enumerate(together) if i != j]
    expected = sum(a != b for a, b in pairs)
    return 1 - (len(together) - 1) * observed / expected if expected else None


def test_a_published_example() -> None:
    alpha = krippendorff_alpha(PUBLISHED, 6)
    assert alpha is not None
    assert round(alpha, 3) == 0.743


@pytest.mark.parametrize("seed", range(8))
def test_it_is_what_slow_loops_compute(seed: int) -> None:
    rng = np.random.default_rng(seed)
    votes = rng.integers(-2, 4, (12, 4)).clip(-1)
    assert krippendorff_alpha(votes, 4) == pytest.approx(slow(votes.tolist()))


def test_ends_of_the_scale() -> None:
    truth = np.arange(30) % 3
    assert krippendorff_alpha(np.stack([truth, truth], axis=1), 3) == 1
    assert krippendorff_alpha(np.stack([truth, 2 - truth], axis=1)[truth != 1], 3) < -0.9  # type: ignore[operator]
    assert krippendorff_alpha(np.zeros((9, 2), np.int64), 3) is None  # one class alone
    assert krippendorff_alpha(np.stack([truth, np.full(30, -1)], axis=1), 3) is None  # nobody can be compared


def test_without_any_vote_the_agreement_is_unknown() -> None:
    assert krippendorff_alpha(np.full((3, 2), -1), 0) is None
