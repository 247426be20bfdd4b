"""Augmentation, against a loop over pixels: every crop and mirror image that there is, made one pixel at a time."""

import itertools

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from dividemix.data.augment import centre_crop, crop_and_flip, cropped_shape, cutout, to_input

Image = NDArray[np.uint8]
CHI2_999 = {49: 85.35, 24: 51.18}  # 99.9 % quantiles by degrees of freedom


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def random_images(num_images: int, height: int = 5, width: int = 4, channels: int = 2) -> Tensor:
    """No pixel is black, so that padding shows."""
    return torch.randint(1, 256, (num_images, height, width, channels), generator=generator(9), dtype=torch.uint8)


def crop(image: Image, padding: int, dy: int, dx: int, mirrored: bool) -> Image:
    """The image moved by (padding - dy, padding - dx), black coming in at the edges, then mirrored left to right."""
    height, width, _ = image.shape
    out = np.zeros_like(image)
    for y, x in itertools.product(range(height), range(width)):
        from_y, from_x = y + dy - padding, x + dx - padding
        if 0 <= from_y < height and 0 <= from_x < width:
            out[y, width - 1 - x if mirrored else x] = image[from_y, from_x]
    return out


def all_crops(image: Image, padding: int) -> dict[bytes, tuple[int, int, bool]]:
    """Each possible outcome, by its bytes, with the draw that makes it."""
    offsets = range(2 * padding + 1)
    draws = list(itertools.product(offsets, offsets, (False, True)))
    crops = {crop(image, padding, *drawn).tobytes(): drawn for drawn in draws}
    assert len(crops) == len(draws)
    return crops


@pytest.mark.parametrize(("flip", "num_draws"), [(True, 50), (False, 25)])
def test_every_crop_and_flip_is_equally_likely(flip: bool, num_draws: int) -> None:
    """100 of each draw expected among the views of one image: chi-square at 99.9 %."""
    image = random_images(1)
    num_views = 100 * num_draws
    views = crop_and_flip(image.expand(num_views, -1, -1, -1), padding=2, flip=flip, generator=generator()).numpy()
    outcomes = all_crops(image[0].numpy(), 2)
    draws = [outcomes[view.tobytes()] for view in views]
    counts = {drawn: draws.count(drawn) for drawn in set(draws)}
    assert len(counts) == num_draws
    assert sum((count - 100) ** 2 / 100 for count in counts.values()) < CHI2_999[num_draws - 1]
    # Rows draw on their own: neighbours agree as often as chance has it, 1 in num_draws (five standard deviations).
    agreeing = sum(a == b for a, b in itertools.pairwise(draws))
    assert abs(agreeing - 100) < 50


@pytest.mark.parametrize("shape", [(5, 4, 2), (3, 7, 1), (6, 6, 3)])
def test_every_row_is_a_crop_of_its_own_image(shape: tuple[int, int, int]) -> None:
    images = random_images(30, *shape)
    views = crop_and_flip(images, padding=1, flip=True, generator=generator())
    assert views.dtype == torch.uint8
    assert views.shape == images.shape
    for image, view in zip(images.numpy(), views.numpy(), strict=True):
        assert view.tobytes() in all_crops(image, 1)


@pytest.mark.parametrize(("shape", "padding"), [((5, 4, 2), 2), ((6, 3, 3), 5), ((1, 4, 1), 1)])
def test_a_reflected_border_is_that_of_numpy(shape: tuple[int, int, int], padding: int) -> None:
    """Each view is a crop of numpy.pad(mode="reflect"), also where the border is larger than the image."""
    images = random_images(40, *shape)
    views = crop_and_flip(images, padding=padding, flip=True, generator=generator(), border="reflected")
    drawn = set()
    for image, view in zip(images.numpy(), views.numpy(), strict=True):
        padded = np.pad(image, ((padding, padding), (padding, padding), (0, 0)), mode="reflect")
        places = itertools.product(range(2 * padding + 1), range(2 * padding + 1), (1, -1))
        crops = {
            (top, left, step): padded[top:, left:][: shape[0], : shape[1]][:, ::step] for top, left, step in places
        }
        found = {place for place, cropped in crops.items() if np.array_equal(cropped, view)}
        assert found
        drawn |= found
    assert len({place[:2] for place in drawn}) > min((2 * padding + 1) ** 2, 20) / 2


def squares(image: Image, size: int) -> dict[bytes, tuple[int, int, bool]]:
    """Each square of a size in an image and its mirror image, by its bytes, copied one pixel at a time."""
    height, width, channels = image.shape
    found = {}
    for top, left, mirrored in itertools.product(range(height - size + 1), range(width - size + 1), (False, True)):
        out = np.zeros((size, size, channels), dtype=np.uint8)
        for y, x in itertools.product(range(size), range(size)):
            out[y, size - 1 - x if mirrored else x] = image[top + y, left + x]
        found[out.tobytes()] = (top, left, mirrored)
    return found


def test_every_square_of_a_larger_image_is_equally_likely() -> None:
    """100 of each of 3 x 4 places, mirrored or not, expected: chi-square at 99.9 % for 23 degrees of freedom."""
    image = random_images(1, 5, 6)
    views = crop_and_flip(image.expand(2400, -1, -1, -1), padding=0, flip=True, generator=generator(), size=3).numpy()
    assert views.shape == (2400, 3, 3, 2)
    outcomes = squares(image[0].numpy(), 3)
    draws = [outcomes[view.tobytes()] for view in views]
    counts = {drawn: draws.count(drawn) for drawn in set(draws)}
    assert len(counts) == 24
    assert sum((count - 100) ** 2 / 100 for count in counts.values()) < 49.73
    agreeing = sum(a == b for a, b in itertools.pairwise(draws))
    assert abs(agreeing - 100) < 50


@pytest.mark.parametrize(("shape", "size", "corner"), [((7, 7), 3, (2, 2)), ((8, 5), 4, (2, 0)), ((6, 9), 6, (0, 1))])
def test_the_centre_is_evaluated(shape: tuple[int, int], size: int, corner: tuple[int, int]) -> None:
    images = random_images(4, *shape)
    crops = centre_crop(images, size)
    assert crops.shape[1:] == cropped_shape(images.shape[1:], size) == (size, size, 2)
    for image, crop in zip(images.numpy(), crops.numpy(), strict=True):
        assert squares(image, size)[crop.tobytes()] == (*corner, False)


def test_without_a_size_images_stay_whole() -> None:
    images = random_images(4)
    assert centre_crop(images, 0) is images
    assert cropped_shape(images.shape[1:], 0) == (5, 4, 2)


def test_without_padding_and_flip_nothing_changes() -> None:
    images = random_images(6)
    assert torch.equal(crop_and_flip(images, padding=0, flip=False, generator=generator()), images)


def test_without_padding_images_are_only_mirrored() -> None:
    images = random_images(40)
    views = crop_and_flip(images, padding=0, flip=True, generator=generator())
    mirrored = [torch.equal(view, image.flip(1)) for view, image in zip(views, images, strict=True)]
    kept = [torch.equal(view, image) for view, image in zip(views, images, strict=True)]
    assert all(a != b for a, b in zip(mirrored, kept, strict=True))
    assert 0 < sum(mirrored) < 40


def test_no_rows_give_no_rows() -> None:
    assert crop_and_flip(random_images(0), padding=2, flip=True, generator=generator()).shape == (0, 5, 4, 2)


def test_the_generator_decides() -> None:
    images = random_images(50)
    first, again, other = (crop_and_flip(images, padding=2, flip=True, generator=generator(s)) for s in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_the_images_given_stay_as_they_are() -> None:
    images = random_images(4)
    before = images.clone()
    crop_and_flip(images, padding=2, flip=True, generator=generator())[:] = 0
    assert torch.equal(images, before)


@pytest.mark.parametrize("channels", [1, 3])
def test_to_input_normalises_each_channel(channels: int) -> None:
    images = random_images(3, channels=channels)
    images[0, 0, 0], images[0, 0, 1] = 0, 255
    mean, std = np.array([0.5, 0.1, 0.9])[:channels], np.array([0.25, 1.0, 0.01])[:channels]
    given = to_input(images, torch.tensor(mean, dtype=torch.float32), torch.tensor(std, dtype=torch.float32))
    expected = (images.numpy().astype(np.float64) / 255 - mean) / std
    assert given.dtype == torch.float32
    assert given.shape == (3, channels, 5, 4)
    np.testing.assert_allclose(given.numpy(), expected.transpose(0, 3, 1, 2), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("channels", [1, 3])
def test_to_input_is_channels_last_in_memory(channels: int) -> None:
    """Strides of the four axes: a pixel's channels lie side by side."""
    given = to_input(random_images(3, channels=channels), torch.zeros(channels), torch.ones(channels))
    assert given.is_contiguous(memory_format=torch.channels_last)
    assert given.permute(0, 2, 3, 1).is_contiguous()


@pytest.mark.parametrize(("height", "width", "side"), [(8, 8, 4), (12, 9, 4), (7, 8, 3)])
def test_cutout_covers_one_square_around_an_evenly_drawn_pixel(height: int, width: int, side: int) -> None:
    images = random_images(1, height, width).clamp(max=126).expand(height * width * 50, -1, -1, -1)
    views = cutout(images, side, generator())
    covered = (views == 127).all(dim=3)
    assert torch.equal(views[~covered], images[~covered])
    counts = {}
    for y, x in itertools.product(range(height), range(width)):
        top, left = y - side // 2, x - side // 2
        square = torch.zeros(height, width, dtype=torch.bool)
        square[max(top, 0) : top + side, max(left, 0) : left + side] = True
        counts[y, x] = int((covered == square).flatten(1).all(dim=1).sum())
    assert sum(counts.values()) == len(images)
    assert all(abs(count - 50) < 5 * 50**0.5 for count in counts.values())


def test_without_a_square_nothing_is_drawn() -> None:
    used, images = generator(), random_images(3)
    assert cutout(images, 0, used) is images
    assert torch.equal(used.get_state(), generator().get_state())
