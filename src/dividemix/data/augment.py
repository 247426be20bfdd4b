"""Batched augmentation: every row gets its own random crop and flip; uint8 in, normalised floats out.

Shapes: R rows, H x W pixels. Channels are always last in memory: the input is (R, H, W, channels), the output is
(R, channels, H, W) in the channels_last format, without a copy.
"""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

_GREY = 127


def crop_and_flip(
    images: Tensor,
    *,
    padding: int,
    flip: bool,
    generator: torch.Generator,
    size: int = 0,
    border: Literal["black", "reflected"] = "black",
) -> Tensor:
    """Pad images (R, H, W, channels) uint8, crop squares of `size` (0: H x W) and mirror; each at random.

    The border that is padded is black, or the image reflected at its outermost pixels.
    """
    num_rows, *sides, _ = images.shape
    device = images.device
    height, width = (size or side for side in sides)
    offset = [
        torch.randint(side + 2 * padding - cropped + 1, (num_rows, 1), generator=generator).to(device)
        for side, cropped in zip(sides, (height, width), strict=True)
    ]
    mirrored = (torch.rand(num_rows, 1, generator=generator) < 0.5).to(device) if flip else None
    y = torch.arange(height, device=device) + offset[0]  # (R, H): the source row in the padded image
    x = torch.arange(width, device=device).expand(num_rows, -1)
    if mirrored is not None:
        x = torch.where(mirrored, width - 1 - x, x)
    x = x + offset[1]  # (R, W)
    if border == "reflected":
        y, x = (_reflected(at - padding, side) for at, side in zip((y, x), sides, strict=True))
        padded = images
    else:
        padded = F.pad(images, (0, 0, padding, padding, padding, padding))
    row = torch.arange(num_rows, device=device)
    return padded[row[:, None, None], y[:, :, None], x[:, None, :]]


def _reflected(position: Tensor, side: int) -> Tensor:
    """The pixel at a position that may be outside of 0 ... side - 1, if the edges are mirrors."""
    period = max(2 * (side - 1), 1)
    position = position.remainder(period)
    return torch.minimum(position, period - position)


def cutout(images: Tensor, side: int, generator: torch.Generator, fill: Tensor | None = None) -> Tensor:
    """Cover a square of `side` pixels, around a random pixel of each image (DeVries and Taylor, 2017).

    Its colour is `fill` (channels,), or grey. It should be the mean of the images: in dark ones grey would outshine
    all else. The square may reach outside of the image. With side 0 the images (R, H, W, channels) are returned as they
    are.
    """
    if not side:
        return images
    num_rows, *sides, _ = images.shape
    covered = []
    for length in sides:
        first = torch.randint(length, (num_rows, 1), generator=generator).to(images.device) - side // 2
        pixel = torch.arange(length, device=images.device)
        covered.append((pixel >= first) & (pixel < first + side))  # (R, length)
    square = (covered[0][:, :, None] & covered[1][:, None, :])[..., None]
    return images.masked_fill(square, _GREY) if fill is None else torch.where(square, fill, images)


def centre_crop(images: Tensor, size: int) -> Tensor:
    """The central squares of `size` of images (R, H, W, channels); with size 0 the images themselves.

    If the exact centre is between pixels, the crop is half a pixel up and left.
    """
    if not size:
        return images
    top, left = ((side - size) // 2 for side in images.shape[1:3])
    return images[:, top : top + size, left : left + size]


def cropped_shape(image_shape: Sequence[int], size: int) -> tuple[int, int, int]:
    """The shape (H, W, channels) that a net gets of images (H, W, channels)."""
    height, width, channels = image_shape
    return size or height, size or width, channels


def to_input(images: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    """The input (R, channels, H, W) of a net: uint8 images (R, H, W, channels) scaled to [0, 1] and normalised."""
    scale = 1 / (255 * std)
    return torch.addcmul(-mean / std, images.to(scale.dtype), scale).permute(0, 3, 1, 2)
