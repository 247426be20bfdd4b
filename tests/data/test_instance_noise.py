"""Instance-dependent noise. Oracle: Algorithm 2 of Xia et al. as a loop over the samples; counts by its definition."""

import numpy as np
import pytest

from dividemix.data.noise import add_noise, parse_noise
from dividemix.errors import InputError

TRUE = np.random.default_rng(0).integers(4, size=6_000)
VECTORS = np.random.default_rng(1).normal(3, 2, (6_000, 5)).astype(np.float32)


def labels_of(text: str, samples: np.ndarray = VECTORS, seed: int = 1) -> np.ndarray:
    return add_noise(TRUE, parse_noise(text), num_classes=4, seed=seed, samples=samples).labels


def test_labels_are_those_of_a_loop_over_the_samples() -> None:
    """The same stream of random numbers, used one sample at a time."""
    rng = np.random.Generator(np.random.PCG64(1))
    rates, draws, coins = rng.normal(0.4, 0.1, 6_000), rng.random(6_000), rng.random(6_000)
    maps = [rng.standard_normal((5, 4)) for _ in range(4)]
    rows = VECTORS.astype(np.float64)
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    expected = []
    for x, label, rate, draw, coin in zip(rows, TRUE, rates, draws, coins, strict=True):
        if coin >= rate:
            expected.append(label)
            continue
        others = [j for j in range(4) if j != label]
        weights = np.exp([x @ maps[label][:, j] for j in others])
        bounds = np.cumsum(weights / weights.sum())
        expected.append(others[next(k for k, bound in enumerate(bounds) if draw < bound)])
    assert 0 <= rates.min() <= rates.max() <= 1  # no rate was drawn twice, so both used the stream alike
    np.testing.assert_array_equal(labels_of("instance:0.4"), expected)


@pytest.mark.parametrize("rate", [0.0, 0.01, 0.2, 0.4, 0.95, 1.0])
def test_the_share_of_wrong_labels_is_the_rate(rate: float) -> None:
    deviation = np.sqrt(rate * (1 - rate) / 6_000)
    assert np.mean(labels_of(f"instance:{rate}") != TRUE) == pytest.approx(rate, abs=5 * deviation)


def test_like_samples_are_mistaken_for_the_same_class() -> None:
    """With many features the map decides nearly alone: a sample's wrong label is mostly the one its neighbours get."""
    centres = np.random.default_rng(2).normal(size=(3, 200))
    group = np.arange(6_000) % 3
    labels = labels_of("instance:0.5", centres[group] + 1e-6 * np.random.default_rng(3).normal(size=(6_000, 200)))
    for true_class in range(4):
        for number in range(3):
            wrong = labels[(true_class == TRUE) & (group == number) & (labels != TRUE)]
            assert np.bincount(wrong, minlength=4).max() > 0.75 * len(wrong)  # a third by chance


def test_images_are_read_as_rows_of_pixels() -> None:
    images = np.random.default_rng(4).integers(0, 256, (6_000, 3, 2, 1), dtype=np.uint8)
    images[:, 0, 0, 0] = 7  # a pixel that is the same in every image divides by nothing
    np.testing.assert_array_equal(
        labels_of("instance:0.3", images), labels_of("instance:0.3", images.reshape(6_000, 6).astype(np.float64))
    )


def test_the_scale_of_a_feature_does_not_matter() -> None:
    np.testing.assert_array_equal(labels_of("instance:0.3"), labels_of("instance:0.3", VECTORS * 8 - 16))


def test_equal_seeds_give_equal_labels_and_others_do_not() -> None:
    np.testing.assert_array_equal(labels_of("instance:0.3"), labels_of("instance:0.3"))
    assert (labels_of("instance:0.3") != labels_of("instance:0.3", seed=2)).any()


def test_labels_without_samples_are_refused() -> None:
    with pytest.raises(InputError, match="instance noise depends on the samples"):
        add_noise(TRUE, parse_noise("instance:0.3"), num_classes=4, seed=1)
