"""Feature vectors: oracles are numpy in float64, and the moments of the noise that was asked for."""

from typing import Any

import numpy as np
import pytest
import torch

from dividemix.data.features import FeatureData, feature_statistics

RNG = np.random.default_rng(0)
FEATURES = RNG.normal(size=(20, 3)) * (1, 100, 1e-6) + (0, 1e4, 5)
LABELS = RNG.integers(0, 4, size=20)


def feature_data(noise_std: float = 0.0) -> FeatureData:
    mean, std = feature_statistics(FEATURES)
    return FeatureData(FEATURES, LABELS, mean=mean, std=std, noise_std=noise_std)


def test_plain_gives_the_standardised_rows_of_each_batch() -> None:
    batches = [torch.tensor([3, 3, 19]), torch.tensor([0]), torch.empty(0, dtype=torch.int64)]
    expected = (FEATURES - FEATURES.mean(axis=0)) / FEATURES.std(axis=0)
    for index, rows in zip(batches, feature_data(0.5).plain(batches), strict=True):
        assert rows.dtype == torch.float32
        np.testing.assert_allclose(rows.numpy(), expected[index.numpy()], rtol=1e-5, atol=1e-6)


def test_labels_are_the_given_ones() -> None:
    data = feature_data()
    assert data.labels.dtype == torch.int64
    assert data.labels.tolist() == LABELS.tolist()


def test_augmented_adds_noise_of_the_size_asked_for_to_every_number() -> None:
    data, index = feature_data(0.3), torch.arange(20).repeat(500)
    (views,) = data.augmented([index], torch.Generator().manual_seed(0))
    noise = (views - data.features[index]).numpy()
    np.testing.assert_allclose(noise.mean(axis=0), 0, atol=0.02)
    np.testing.assert_allclose(noise.std(axis=0), 0.3, rtol=0.05)
    np.testing.assert_allclose(np.corrcoef(noise.T), np.eye(3), atol=0.05)


def test_augmented_without_noise_is_plain() -> None:
    data, batches = feature_data(), [torch.arange(5), torch.arange(5, 9)]
    for a, b in zip(data.augmented(batches, torch.Generator()), data.plain(batches), strict=True):
        assert torch.equal(a, b)


def test_the_generator_decides_and_moves_from_batch_to_batch() -> None:
    data, batches = feature_data(0.1), [torch.arange(20)] * 2
    first, again, other = (list(data.augmented(batches, torch.Generator().manual_seed(s))) for s in (1, 1, 2))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not torch.equal(first[0], first[1])
    assert not torch.equal(first[0], other[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_statistics_are_numpys_in_float64(dtype: type[np.floating[Any]]) -> None:
    features = FEATURES.astype(dtype)
    mean, std = feature_statistics(features)
    assert mean.dtype == std.dtype == np.float64
    np.testing.assert_allclose(mean, features.astype(np.float64).mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(std, features.astype(np.float64).std(axis=0), rtol=1e-12)


@pytest.mark.parametrize("value", [0.0, 0.1, -1e4, 5e-324])
def test_a_constant_feature_is_left_at_zero(value: float) -> None:
    """The mean of 0.1, thirteen times, is not 0.1 in floating point: a rounding must not be blown up."""
    features = np.full((13, 1), value)
    mean, std = feature_statistics(features)
    assert std == 1.0
    data = FeatureData(features, np.zeros(13, np.int64), mean=mean, std=std)
    np.testing.assert_allclose(data.features.numpy(), 0, atol=1e-12)


def test_an_absurd_value_stays_finite() -> None:
    mean, std = feature_statistics(FEATURES)
    rows = np.array([[1e300, -1e300, 0.0]])
    data = FeatureData(rows, np.zeros(1, np.int64), mean=mean, std=std)
    assert data.features.isfinite().all()
