"""Encoders for tests: functions that make them, as a user's own module would have, and how often they computed."""

from typing import Any

import numpy as np
import torch
from torch import nn

COUNTS = {"images": 0}


class Patches(nn.Module):
    """Means of a grid of patches: vectors that tell the toy images apart; 8 x 8 pixels, 3 channels."""

    image_size = 8
    mean = (0.5, 0.5, 0.5)
    std = (0.25, 0.25, 0.25)

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(scale))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Vectors (R, 48) of images (R, 3, 8, 8)."""
        if not torch.compiler.is_compiling():
            COUNTS["images"] += len(images)
        pooled: torch.Tensor = nn.functional.avg_pool2d(images, 2).flatten(1)
        return self.scale * pooled


class Plain:
    """An encoder that is no module: the mean of each quarter."""

    takes = "images"

    def encode(self, batch: Any) -> Any:
        """Vectors (R, 4)."""
        images = np.asarray(batch, dtype=np.float32)
        return images.reshape(len(images), 2, 4, 2, 4, -1).mean(axis=(2, 4, 5)).reshape(len(images), -1)


def patches() -> nn.Module:
    """A module."""
    return Patches()


def plain() -> Any:
    """An object."""
    return Plain()


def broken() -> Any:
    """A function that fails."""
    raise RuntimeError("no weights here\nsecond line")


def nothing() -> Any:
    """A function that makes no encoder."""
    return 7
