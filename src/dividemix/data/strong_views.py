"""Strong views: each image gets random operations and a grey square; uint8 in, uint8 out.

The operations and their ranges are those of RandAugment (Cubuk et al., 2020), the square is Cutout (DeVries and Taylor,
2017). Compose them with the weak view and the normalisation of `augment`: `crop_and_flip`, `strong_views`, `to_input`.
No method uses them yet: in short trainings they cost accuracy (LOG.md).

Shapes: R rows, H x W pixels, 1 or 3 channels: images are (R, H, W, channels) uint8 on any device.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from dividemix.data import image_operations as ops
from dividemix.data.augment import cutout


@dataclass(frozen=True)
class Operation:
    """An operation on images (R, H, W, channels), and the range from which each image draws its amount."""

    apply: Callable[[Tensor, Tensor], Tensor]
    low: float = 0.0
    high: float = 0.0


OPERATIONS = {
    "identity": Operation(lambda images, _: images),
    "autocontrast": Operation(lambda images, _: ops.autocontrast(images)),
    "equalize": Operation(lambda images, _: ops.equalize(images)),
    "brightness": Operation(ops.brightness, 0.1, 1.9),
    "saturation": Operation(ops.saturation, 0.1, 1.9),
    "contrast": Operation(ops.contrast, 0.1, 1.9),
    "sharpness": Operation(ops.sharpness, 0.1, 1.9),
    "posterize": Operation(ops.posterize, 4, 9),  # whole bits: 4 to 8
    "solarize": Operation(ops.solarize, 0, 256),
    "rotate": Operation(ops.rotate, -30, 30),
    "shear_x": Operation(ops.shear_x, -0.3, 0.3),
    "shear_y": Operation(ops.shear_y, -0.3, 0.3),
    "translate_x": Operation(ops.translate_x, -0.3, 0.3),
    "translate_y": Operation(ops.translate_y, -0.3, 0.3),
}


def strong_views(images: Tensor, generator: torch.Generator, *, num_operations: int = 2) -> Tensor:
    """Apply random operations to images (R, H, W, channels) uint8, then Cutout; each image draws its own."""
    size = (num_operations, len(images))
    kinds = torch.randint(len(OPERATIONS), size, generator=generator)
    places = torch.rand(size, generator=generator, dtype=torch.float64)  # 0: the lowest amount, 1: the highest
    views = images.clone()
    for kind, place in zip(kinds, places, strict=True):
        for position, operation in enumerate(OPERATIONS.values()):
            rows = (kind == position).nonzero()[:, 0]
            amounts = operation.low + (operation.high - operation.low) * place[rows]
            index = rows.to(images.device)
            views.index_copy_(0, index, operation.apply(views.index_select(0, index), amounts))
    return cutout(views, min(images.shape[1:3]) // 4 * 2, generator)  # half the shorter side, an even number
