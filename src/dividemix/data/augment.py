"""Batched augmentation: every row draws its own crop and flip; uint8 in, normalised floats out.

Shapes: R rows, H x W pixels, channels last in memory throughout: (R, H, W, channels) comes in, and what goes out is
(R, channels, H, W) in the channels_last format without a copy.
"""

import torch
from torch import Tensor
from torch.nn import functional as F


def crop_and_flip(images: Tensor, *, padding: int, flip: bool, generator: torch.Generator) -> Tensor:
    """Images (R, H, W, channels) uint8, each padded with black, cropped back to H x W at a random place, mirrored."""
    num_rows, height, width, _ = images.shape
    device = images.device
    offset = torch.randint(2 * padding + 1, (2, num_rows, 1), generator=generator).to(device)
    mirrored = (torch.rand(num_rows, 1, generator=generator) < 0.5).to(device) if flip else None
    y = torch.arange(height, device=device) + offset[0]  # (R, H): the source row in the padded image
    x = torch.arange(width, device=device).expand(num_rows, -1)
    if mirrored is not None:
        x = torch.where(mirrored, width - 1 - x, x)
    x = x + offset[1]  # (R, W)
    padded = F.pad(images, (0, 0, padding, padding, padding, padding))
    row = torch.arange(num_rows, device=device)
    return padded[row[:, None, None], y[:, :, None], x[:, None, :]]


def to_input(images: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    """What a net takes (R, channels, H, W): uint8 images (R, H, W, channels) scaled to [0, 1] and normalised."""
    scale = 1 / (255 * std)
    return torch.addcmul(-mean / std, images.to(scale.dtype), scale).permute(0, 3, 1, 2)
