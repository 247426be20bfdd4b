"""Nearest neighbours: the oracle is scikit-learn's search."""

import numpy as np
import pytest
import torch
from sklearn.neighbors import NearestNeighbors

from dividemix.judging import neighbours


@pytest.mark.parametrize(("rows", "columns"), [(1024, 65536), (7, 11), (50, 13), (3, 200)])
@pytest.mark.parametrize("shift", [0.0, 1e3])
def test_the_neighbours_are_those_of_scikit_learn(
    monkeypatch: pytest.MonkeyPatch, rows: int, columns: int, shift: float
) -> None:
    monkeypatch.setattr(neighbours, "_ROWS", rows)
    monkeypatch.setattr(neighbours, "_COLUMNS", columns)
    vectors = (np.random.default_rng(0).normal(size=(100, 6)) + shift).astype(np.float32)
    distances, index = neighbours.nearest(torch.from_numpy(vectors), 5)
    expected, place = NearestNeighbors(n_neighbors=5).fit(vectors.astype(np.float64)).kneighbors()
    if shift:  # float32 finds other near ones there, but measures the distances to them well
        differences = vectors.astype(np.float64)[:, None] - vectors.astype(np.float64)[index]
        np.testing.assert_allclose(distances, np.linalg.norm(differences, axis=2), rtol=1e-4)
    else:
        np.testing.assert_allclose(distances, expected, rtol=1e-4)
        np.testing.assert_array_equal(index, place)


def test_exact_duplicates_have_distance_zero_even_far_from_zero() -> None:
    vectors = torch.randn(20, 8, generator=torch.Generator().manual_seed(0)) + 500
    vectors[13] = vectors[4]
    distances, index = neighbours.nearest(vectors, 3)
    assert distances[4, 0] == distances[13, 0] == 0
    assert index[[4, 13], 0].tolist() == [13, 4]
    assert (distances[:, 0] > 0).sum() == 18
