"""Images in memory and in files.

Oracles: numpy in float64 for the pixels and their statistics, test_augment.py's loop for crops; what an array gives
for files and for subsets.
"""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from pictures import encoded

from dividemix.data.dataset import ArrayData
from dividemix.data.image_files import ImageFiles
from dividemix.data.pixel_statistics import pixel_statistics

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(1, 256, size=(20, 6, 5, 3), dtype=np.uint8)
LABELS = RNG.integers(0, 4, size=20)
MEAN, STD = (0.5, 0.4, 0.3), (0.2, 0.25, 0.3)


def array_data(**options: Any) -> ArrayData:
    return ArrayData(IMAGES, LABELS, mean=MEAN, std=STD, **options)


def file_data(**options: Any) -> ArrayData:
    """The same images, each in a file of its own."""
    files = [encoded(image) for image in IMAGES]
    images = ImageFiles(files, (6, 5, 3), np.arange(20), np.zeros((20, 16), np.uint8))
    return ArrayData(images, LABELS, mean=MEAN, std=STD, **options)


def pixels(images: torch.Tensor) -> NDArray[np.uint8]:
    """What `to_input` was given, by undoing it: (R, H, W, channels), uint8."""
    values = images.numpy().transpose(0, 2, 3, 1).astype(np.float64) * STD + MEAN
    return np.rint(values * 255).astype(np.uint8)


def test_plain_gives_the_normalised_images_of_each_batch() -> None:
    batches = [torch.tensor([3, 3, 19]), torch.tensor([0]), torch.empty(0, dtype=torch.int64)]
    given = list(array_data(crop_padding=2, flip=True).plain(batches))
    assert [len(images) for images in given] == [3, 1, 0]
    for index, images in zip(batches, given, strict=True):
        expected = (IMAGES[index.numpy()].astype(np.float64) / 255 - MEAN) / STD
        np.testing.assert_allclose(images.numpy(), expected.transpose(0, 3, 1, 2), rtol=1e-5, atol=1e-5)
        assert images.is_contiguous(memory_format=torch.channels_last)


def test_views_have_their_square_covered_and_plain_images_have_not() -> None:
    """Oracle: the same draws without the square; what differs is the mean and at most a square of two pixels."""
    plain, covered = (
        pixels(next(array_data(cutout=side, crop_padding=1).augmented([torch.arange(20)], torch.Generator())))
        for side in (0, 2)
    )
    is_covered = (plain != covered).any(axis=3)
    assert (covered[is_covered] == np.rint(255 * np.array(MEAN))).all()
    assert is_covered.sum(axis=(1, 2)).max() == 4
    (images,) = array_data(cutout=2).plain([torch.arange(20)])
    np.testing.assert_array_equal(pixels(images), IMAGES)


def test_augmented_rows_are_crops_of_their_own_image() -> None:
    index = torch.arange(20).repeat(3)
    (images,) = array_data(crop_padding=1, flip=True).augmented([index], torch.Generator().manual_seed(0))
    assert images.shape == (60, 3, 6, 5)
    assert images.is_contiguous(memory_format=torch.channels_last)
    padded = np.pad(IMAGES, ((0, 0), (1, 1), (1, 1), (0, 0)))
    seen = set()
    for i, view in zip(index.tolist(), pixels(images), strict=True):
        candidates = {
            (dy, dx, mirrored): padded[i, dy : dy + 6, dx : dx + 5][:, :: -1 if mirrored else 1]
            for dy, dx, mirrored in itertools.product(range(3), range(3), (False, True))
        }
        (drawn,) = [key for key, crop in candidates.items() if np.array_equal(crop, view)]
        seen.add(drawn)
    assert len(seen) > 9  # 18 draws are possible: rows do not share one


def test_augmented_without_padding_and_flip_is_plain() -> None:
    data, batches = array_data(), [torch.arange(5), torch.arange(5, 9)]
    generator = torch.Generator().manual_seed(0)
    for a, b in zip(data.augmented(batches, generator), data.plain(batches), strict=True):
        assert torch.equal(a, b)


def test_the_generator_decides_and_moves_from_batch_to_batch() -> None:
    data, batches = array_data(crop_padding=2, flip=True), [torch.arange(20)] * 2
    first, again, other = (list(data.augmented(batches, torch.Generator().manual_seed(s))) for s in (1, 1, 2))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not torch.equal(first[0], first[1])
    assert not torch.equal(first[0], other[0])


def test_images_stay_uint8_and_labels_int64() -> None:
    data = array_data()
    assert data.images.dtype == torch.uint8
    assert data.labels.dtype == torch.int64
    assert data.labels.tolist() == LABELS.tolist()


@pytest.mark.parametrize(("side", "crop_size", "at_once"), [(4, 0, 512), (64, 0, 512), (224, 0, 83), (320, 299, 46)])
def test_the_larger_the_images_the_fewer_are_evaluated_at_once(side: int, crop_size: int, at_once: int) -> None:
    images = np.broadcast_to(np.uint8(0), (3, side, side, 1))
    data = ArrayData(images, np.zeros(3, np.int64), mean=MEAN[:1], std=STD[:1], crop_size=crop_size)
    assert data.at_once == at_once


@pytest.mark.parametrize("shape", [(7, 5, 4, 1), (9, 3, 3, 3), (1, 1, 1, 2)])
def test_pixel_statistics_are_numpys(shape: tuple[int, ...]) -> None:
    images = np.random.default_rng(1).integers(0, 256, size=shape, dtype=np.uint8)
    mean, std = pixel_statistics(images)
    scaled = images.astype(np.float64) / 255
    expected_std = scaled.std(axis=(0, 1, 2))
    np.testing.assert_allclose(mean, scaled.mean(axis=(0, 1, 2)), rtol=1e-12)
    np.testing.assert_allclose(std, np.where(expected_std == 0, 1, expected_std), rtol=1e-9)
    assert all(type(value) is float for value in mean + std)


@pytest.mark.parametrize("level", [0, 1, 77, 255])
def test_a_constant_channel_has_deviation_one(level: int) -> None:
    images = np.full((11, 3, 3, 1), level, dtype=np.uint8)
    mean, std = pixel_statistics(images)
    assert mean == pytest.approx((level / 255,))
    assert std == (1.0,)


def test_statistics_normalise_to_mean_zero_and_deviation_one() -> None:
    mean, std = pixel_statistics(IMAGES)
    data = ArrayData(IMAGES, LABELS, mean=mean, std=std)
    (images,) = data.plain([torch.arange(20)])
    np.testing.assert_allclose(images.mean(dim=(0, 2, 3)).numpy(), 0, atol=1e-5)
    np.testing.assert_allclose(images.std(dim=(0, 2, 3), unbiased=False).numpy(), 1, atol=1e-5)


BATCHES = [torch.tensor(batch, dtype=torch.int64) for batch in ([3, 3, 19], [0], [], list(range(20)), [7, 8] * 9, [5])]


def test_files_give_the_batches_of_arrays_bit_for_bit() -> None:
    """Though files are read ahead, the generator is where it is with arrays after every batch."""
    options = {"crop_padding": 2, "flip": True}
    one, two = torch.Generator().manual_seed(3), torch.Generator().manual_seed(3)
    streams = zip(
        array_data(**options).augmented(BATCHES, one), file_data(**options).augmented(BATCHES, two), strict=True
    )
    for a, b in streams:
        assert torch.equal(a, b)
        assert torch.equal(one.get_state(), two.get_state())
    for a, b in zip(array_data().plain(BATCHES), file_data().plain(BATCHES), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("make", [array_data, file_data])
def test_a_subset_is_the_data_of_its_samples_and_shares_the_images(make: Callable[..., ArrayData]) -> None:
    data, index = make(crop_padding=1, flip=True), np.array([17, 4, 4, 0, 9])
    part = data.subset(index)
    assert part.images is data.images
    assert part.labels.tolist() == LABELS[index].tolist()
    batches = [torch.tensor([0, 4]), torch.tensor([1, 2, 3, 3])]
    mapped = [torch.from_numpy(index)[batch] for batch in batches]
    for a, b in zip(part.plain(batches), data.plain(mapped), strict=True):
        assert torch.equal(a, b)
    generators = [torch.Generator().manual_seed(0) for _ in range(2)]
    for a, b in zip(part.augmented(batches, generators[0]), data.augmented(mapped, generators[1]), strict=True):
        assert torch.equal(a, b)
    again = part.subset(np.array([4, 0]))
    assert again.labels.tolist() == LABELS[[9, 17]].tolist()
    (a,), (b,) = again.plain([torch.tensor([0, 1])]), data.plain([torch.tensor([9, 17])])
    assert torch.equal(a, b)
    assert len(data.labels) == 20
