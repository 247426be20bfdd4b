"""Inception-ResNet v2 (Szegedy et al., 2017), its tensors named as in the common public port, so that its files load.

Made for images of 299 x 299. The smallest are 75 x 75: the strides reduce them to a map of one pixel. The mean is over
the last map. Weights start as torch draws them, as in the released code.
"""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

# A convolution as (channels, kernel, stride), padded to keep the image's size if the stride is 1; or a 3 x 3 pooling:
# "mean" with stride 1, or "max" with stride 2.
Kernel = int | tuple[int, int]
Layer = tuple[int, Kernel, int] | Literal["mean", "max"]
Branch = tuple[Layer, ...]

_MIXED_5B: tuple[Branch, ...] = (
    ((96, 1, 1),),
    ((48, 1, 1), (64, 5, 1)),
    ((64, 1, 1), (96, 3, 1), (96, 3, 1)),
    ("mean", (64, 1, 1)),
)
_BLOCK_35: tuple[Branch, ...] = (
    ((32, 1, 1),),
    ((32, 1, 1), (32, 3, 1)),
    ((32, 1, 1), (48, 3, 1), (64, 3, 1)),
)
_MIXED_6A: tuple[Branch, ...] = (
    ((384, 3, 2),),
    ((256, 1, 1), (256, 3, 1), (384, 3, 2)),
    ("max",),
)
_BLOCK_17: tuple[Branch, ...] = (
    ((192, 1, 1),),
    ((128, 1, 1), (160, (1, 7), 1), (192, (7, 1), 1)),
)
_MIXED_7A: tuple[Branch, ...] = (
    ((256, 1, 1), (384, 3, 2)),
    ((256, 1, 1), (288, 3, 2)),
    ((256, 1, 1), (288, 3, 1), (320, 3, 2)),
    ("max",),
)
_BLOCK_8: tuple[Branch, ...] = (
    ((192, 1, 1),),
    ((192, 1, 1), (224, (1, 3), 1), (256, (3, 1), 1)),
)


class ConvNorm(nn.Module):
    """Convolution, BatchNorm (epsilon 0.001, as the original's) and ReLU."""

    def __init__(self, num_in: int, num_out: int, kernel: Kernel, stride: int = 1, *, padded: bool):
        super().__init__()
        height, width = (kernel, kernel) if isinstance(kernel, int) else kernel
        padding = (height // 2, width // 2) if padded else 0
        self.conv = nn.Conv2d(num_in, num_out, (height, width), stride, padding, bias=False)
        self.bn = nn.BatchNorm2d(num_out, eps=1e-3)

    def forward(self, x: Tensor) -> Tensor:
        """(B, num_in, H, W) to (B, num_out, H', W')."""
        return F.relu(self.bn(self.conv(x)))


class Mixed(nn.Module):
    """Parallel branches, named branch0, branch1, ...; their channels, num_out in all, are concatenated."""

    def __init__(self, num_in: int, branches: tuple[Branch, ...]):
        super().__init__()
        self.num_branches = len(branches)
        self.num_out = 0
        for i, branch in enumerate(branches):
            layers: list[nn.Module] = []
            channels = num_in
            for layer in branch:
                if layer == "mean":
                    layers.append(nn.AvgPool2d(3, 1, padding=1, count_include_pad=False))
                elif layer == "max":
                    layers.append(nn.MaxPool2d(3, 2))
                else:
                    num_out, kernel, stride = layer
                    layers.append(ConvNorm(channels, num_out, kernel, stride, padded=stride == 1))
                    channels = num_out
            self.add_module(f"branch{i}", layers[0] if len(layers) == 1 else nn.Sequential(*layers))
            self.num_out += channels

    def forward(self, x: Tensor) -> Tensor:
        """(B, num_in, H, W) to (B, num_out, H', W')."""
        return torch.cat([self.get_submodule(f"branch{i}")(x) for i in range(self.num_branches)], dim=1)


class Residual(Mixed):
    """Branches whose joined channels, brought back to num_in and scaled, are added to the input."""

    def __init__(self, num_in: int, branches: tuple[Branch, ...], scale: float, *, active: bool = True):
        super().__init__(num_in, branches)
        self.conv2d = nn.Conv2d(self.num_out, num_in, 1)
        self.scale = scale
        self.active = active

    def forward(self, x: Tensor) -> Tensor:
        """(B, num_in, H, W) to the same shape; without the ReLU if not active."""
        out: Tensor = x + self.scale * self.conv2d(super().forward(x))
        return F.relu(out) if self.active else out


class InceptionResNetV2(nn.Module):
    """The stem, 10 + 20 + 10 residual blocks on ever smaller maps, the mean over the map and a linear layer."""

    def __init__(self, num_classes: int, in_channels: int = 3):
        super().__init__()
        self.conv2d_1a = ConvNorm(in_channels, 32, 3, 2, padded=False)
        self.conv2d_2a = ConvNorm(32, 32, 3, padded=False)
        self.conv2d_2b = ConvNorm(32, 64, 3, padded=True)
        self.maxpool_3a = nn.MaxPool2d(3, 2)
        self.conv2d_3b = ConvNorm(64, 80, 1, padded=False)
        self.conv2d_4a = ConvNorm(80, 192, 3, padded=False)
        self.maxpool_5a = nn.MaxPool2d(3, 2)
        self.mixed_5b = Mixed(192, _MIXED_5B)
        self.repeat = nn.Sequential(*(Residual(320, _BLOCK_35, 0.17) for _ in range(10)))
        self.mixed_6a = Mixed(320, _MIXED_6A)
        self.repeat_1 = nn.Sequential(*(Residual(1088, _BLOCK_17, 0.1) for _ in range(20)))
        self.mixed_7a = Mixed(1088, _MIXED_7A)
        self.repeat_2 = nn.Sequential(*(Residual(2080, _BLOCK_8, 0.2) for _ in range(9)))
        self.block8 = Residual(2080, _BLOCK_8, 1.0, active=False)
        self.conv2d_7b = ConvNorm(2080, 1536, 1, padded=False)
        self.last_linear = nn.Linear(1536, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        """Logits (B, C) of images (B, in_channels, H, W), H and W at least 75."""
        *body, head = self.children()  # made in the order in which they run
        features = images
        for part in body:
            features = part(features)
        logits: Tensor = head(features.mean(dim=(2, 3)))
        return logits
