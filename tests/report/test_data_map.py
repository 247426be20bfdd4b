"""The map of vectors: the oracle is scikit-learn's PCA."""

import numpy as np
from sklearn.decomposition import PCA

from dividemix.report.data_map import data_map

VECTORS = np.random.default_rng(0).normal(size=(300, 6)).astype(np.float32) * (5, 3, 1, 1, 1, 1)


def test_points_are_the_principal_components() -> None:
    made = data_map(VECTORS, np.zeros(300, dtype=np.bool_))
    pca = PCA(2).fit(VECTORS)
    expected = pca.transform(VECTORS)
    assert made["samples"] == list(range(300))
    for found, axis in zip(np.array(made["points"]).T, expected.T, strict=True):
        assert abs(np.corrcoef(found, axis)[0, 1]) > 0.9999
        assert (found.min(), found.max()) == (0, 1)
    np.testing.assert_allclose(made["share"], pca.explained_variance_ratio_.sum(), rtol=1e-5)


def test_a_large_set_is_sampled_with_its_suspects_and_always_the_same() -> None:
    vectors = np.random.default_rng(1).normal(size=(5000, 3)).astype(np.float32)
    is_issue = np.arange(5000) % 4 == 0
    made = data_map(vectors, is_issue)
    assert len(set(made["samples"])) == len(made["points"]) == 1500
    assert is_issue[made["samples"]].sum() == 500
    assert data_map(vectors, is_issue) == made


def test_flat_data_has_a_map_too() -> None:
    for vectors in (np.ones((4, 3)), np.arange(4.0)[:, None]):
        points = np.array(data_map(vectors.astype(np.float32), np.zeros(4, dtype=np.bool_))["points"])
        assert points.shape == (4, 2)
        assert np.isfinite(points).all()
