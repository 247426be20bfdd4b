"""Operations on images, against Pillow's on each image by itself: every value must be the same."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image, ImageEnhance, ImageOps
from torch import Tensor

from dividemix.data import image_operations as ops

Matrix = Callable[[Image.Image, float], Sequence[float]]
Oracle = Callable[[Image.Image, float], Image.Image]


def affine(matrix: Matrix) -> Oracle:
    return lambda image, amount: image.transform(image.size, Image.Transform.AFFINE, matrix(image, amount))


# The operation, Pillow's, and the range of the amounts.
CASES: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], Oracle, float, float]] = {
    "autocontrast": (lambda x, _: ops.autocontrast(x), lambda image, _: ImageOps.autocontrast(image), 0, 0),
    "equalize": (lambda x, _: ops.equalize(x), lambda image, _: ImageOps.equalize(image), 0, 0),
    "posterize": (ops.posterize, lambda image, bits: ImageOps.posterize(image, int(bits)), 1, 9),
    "solarize": (ops.solarize, lambda image, threshold: ImageOps.solarize(image, threshold), 0, 257),  # type: ignore[arg-type]
    "brightness": (ops.brightness, lambda image, factor: ImageEnhance.Brightness(image).enhance(factor), 0, 3),
    "contrast": (ops.contrast, lambda image, factor: ImageEnhance.Contrast(image).enhance(factor), 0, 3),
    "saturation": (ops.saturation, lambda image, factor: ImageEnhance.Color(image).enhance(factor), 0, 3),
    "sharpness": (ops.sharpness, lambda image, factor: ImageEnhance.Sharpness(image).enhance(factor), 0, 3),
    "rotate": (ops.rotate, lambda image, degrees: image.rotate(degrees), -60, 60),
    "shear_x": (ops.shear_x, affine(lambda _, share: (1, share, 0, 0, 1, 0)), -1, 1),
    "shear_y": (ops.shear_y, affine(lambda _, share: (1, 0, 0, share, 1, 0)), -1, 1),
    "translate_x": (ops.translate_x, affine(lambda image, share: (1, 0, share * image.width, 0, 1, 0)), -1, 1),
    "translate_y": (ops.translate_y, affine(lambda image, share: (1, 0, 0, 0, 1, share * image.height)), -1, 1),
}


def pictures(height: int, width: int, channels: int, *, seed: int = 0) -> NDArray[np.uint8]:
    """Smooth images of all brightnesses and contrasts, noise, and images of one value and of two."""
    rng = np.random.default_rng(seed)
    images = []
    for _ in range(24):
        coarse = Image.fromarray(rng.integers(0, 256, (4, 4, 3), dtype=np.uint8)).resize((width, height))
        low, high = np.sort(rng.uniform(0, 255, 2))
        images.append(low + (high - low) * np.asarray(coarse)[:, :, :channels] / 255)
    images += list(rng.integers(0, 256, (6, height, width, channels)))
    images += [np.full((height, width, channels), value) for value in (0, 7, 255)]
    images += [255 * (images[0] > images[0].mean())]
    return np.stack(images).astype(np.uint8)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", [(32, 32), (17, 24), (3, 2)])
@pytest.mark.parametrize("name", CASES)
def test_every_operation_equals_that_of_pillow(name: str, size: tuple[int, int], channels: int) -> None:
    operation, oracle, low, high = CASES[name]
    images = pictures(*size, channels)
    amounts = np.random.default_rng(1).uniform(low, high, len(images))
    given = operation(torch.from_numpy(images), torch.from_numpy(amounts))
    assert given.dtype == torch.uint8
    for image, amount, view in zip(images, amounts, given.numpy(), strict=True):
        expected = oracle(Image.fromarray(image if channels == 3 else image[:, :, 0]), float(amount))
        np.testing.assert_array_equal(view, np.asarray(expected).reshape(image.shape))


@pytest.mark.parametrize(
    ("name", "neutral"),
    [
        *((name, 1.0) for name in ("brightness", "contrast", "saturation", "sharpness")),
        *((name, 0.0) for name in ("rotate", "shear_x", "shear_y", "translate_x", "translate_y")),
        ("posterize", 8.0),
        ("solarize", 256.0),
    ],
)
def test_a_neutral_amount_changes_nothing(name: str, neutral: float) -> None:
    images = torch.from_numpy(pictures(9, 8, 3))
    amounts = torch.full((len(images),), neutral, dtype=torch.float64)
    assert torch.equal(CASES[name][0](images, amounts), images)


@pytest.mark.parametrize("name", CASES)
def test_no_images_give_no_images_and_the_given_ones_stay(name: str) -> None:
    operation, _, low, high = CASES[name]
    assert operation(torch.empty(0, 5, 4, 3, dtype=torch.uint8), torch.empty(0, dtype=torch.float64)).shape[0] == 0
    images = torch.from_numpy(pictures(5, 4, 3))
    before = images.clone()
    operation(images, torch.full((len(images),), (low + high) / 2, dtype=torch.float64))[:] = 3
    assert torch.equal(images, before)
