"""A small network in the manner of VGG: the most accurate that we found for small images and minutes on a CPU."""

from torch import Tensor, nn
from torch.nn import functional as F

_SCALE = 1 / 9  # of the features: small logits at the start let training begin at a high rate


class SmallVGG(nn.Module):
    """A 2 x 2 convolution, three stages of two 3 x 3 convolutions that halve the image, the maximum over what is left.

    The stages have `width`, twice and four times as many channels.
    """

    def __init__(self, num_classes: int, in_channels: int, width: int):
        super().__init__()
        num_in = max(width // 2, 1)
        self.stem = nn.Conv2d(in_channels, num_in, 2)
        stages = []
        for num_out in (width, 2 * width, 4 * width):
            stages.append(_Stage(num_in, num_out))
            num_in = num_out
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(num_in, num_classes, bias=False)

    def forward(self, images: Tensor) -> Tensor:
        """Logits (B, C) of images (B, in_channels, H, W)."""
        features = self.stages(F.relu(self.stem(images))).amax(dim=(2, 3))
        logits: Tensor = self.head(features * _SCALE)
        return logits


class _Stage(nn.Module):
    """Two convolutions, each with BatchNorm and ReLU; the first is followed by max-pooling."""

    def __init__(self, num_in: int, num_out: int):
        super().__init__()
        self.conv1 = nn.Conv2d(num_in, num_out, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(num_out)
        self.conv2 = nn.Conv2d(num_out, num_out, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(num_out)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv1(x)
        if min(x.shape[2:]) > 1:  # a tiny image cannot be halved further
            x = F.max_pool2d(x, 2)
        x = F.relu(self.norm1(x))
        return F.relu(self.norm2(self.conv2(x)))
