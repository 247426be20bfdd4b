"""Pre-activation ResNet-18 (He et al., 2016) for images of about 32 x 32, as the paper's CIFAR experiments use it.

The details are those of the released code, from which the published numbers come: the stem has its own
BatchNorm and ReLU, every shortcut starts after a block's first activation, and nothing normalises before the pooling.
"""

from torch import Tensor, nn
from torch.nn import functional as F


class PreActBlock(nn.Module):
    """BatchNorm-ReLU-convolution twice, added to a shortcut that starts after the first activation."""

    def __init__(self, num_in: int, num_out: int, stride: int):
        super().__init__()
        self.norm1 = nn.BatchNorm2d(num_in)
        self.conv1 = nn.Conv2d(num_in, num_out, 3, stride, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(num_out)
        self.conv2 = nn.Conv2d(num_out, num_out, 3, padding=1, bias=False)
        changes_shape = stride != 1 or num_in != num_out
        self.shortcut = nn.Conv2d(num_in, num_out, 1, bias=False) if changes_shape else None
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        """(B, num_in, H, W) to (B, num_out, H / stride, W / stride)."""
        active = F.relu(self.norm1(x))
        skip = active
        if self.shortcut is not None:
            # Pixels are dropped here and not by a stride: the CPU's strided 1 x 1 convolution of a few channels_last
            # channels writes past its memory in the backward pass (torch 2.13; net_width 2 and 4 crashed).
            skip = self.shortcut(active[:, :, :: self.stride, :: self.stride])
        out: Tensor = self.conv1(active)
        out = self.conv2(F.relu(self.norm2(out)))
        return out + skip


class PreActResNet(nn.Module):
    """Four stages of two blocks, width to 8 x width channels, then the mean over the image and a linear layer."""

    def __init__(self, num_classes: int, in_channels: int, width: int, final_norm: bool):
        super().__init__()
        self.stem = nn.Conv2d(in_channels, width, 3, padding=1, bias=False)
        self.stem_norm = nn.BatchNorm2d(width)
        blocks: list[nn.Module] = []
        num_in = width
        for stage in range(4):
            num_out = width * 2**stage
            blocks += [PreActBlock(num_in, num_out, 1 if stage == 0 else 2), PreActBlock(num_out, num_out, 1)]
            num_in = num_out
        self.blocks = nn.Sequential(*blocks)
        self.final = nn.Sequential(nn.BatchNorm2d(num_in), nn.ReLU()) if final_norm else nn.Identity()
        self.head = nn.Linear(num_in, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        """Logits (B, C) of images (B, in_channels, H, W)."""
        features: Tensor = F.relu(self.stem_norm(self.stem(images)))
        features = self.final(self.blocks(features))
        logits: Tensor = self.head(features.mean(dim=(2, 3)))
        return logits
