"""ResNet-50 (He et al., 2016) for photographs, its tensors named as torchvision names them, so that its files load.

As in torchvision, a stage halves the image in the 3 x 3 convolution of its first block, not in the 1 x 1 before it.
"""

from torch import Tensor, nn
from torch.nn import functional as F

_EXPANSION = 4


class Bottleneck(nn.Module):
    """1 x 1, 3 x 3 and 1 x 1 convolution, each normalised, added to the input or to its projection."""

    def __init__(self, num_in: int, num_mid: int, stride: int):
        super().__init__()
        num_out = _EXPANSION * num_mid
        self.conv1 = nn.Conv2d(num_in, num_mid, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(num_mid)
        self.conv2 = nn.Conv2d(num_mid, num_mid, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(num_mid)
        self.conv3 = nn.Conv2d(num_mid, num_out, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(num_out)
        self.downsample: nn.Module | None = None
        if stride != 1 or num_in != num_out:
            # A strided 1 x 1 convolution of a few channels_last channels corrupts memory in the CPU's backward pass
            # (torch 2.13, see preact_resnet): the 256 channels and more of this net are safe, a narrow copy is not.
            self.downsample = nn.Sequential(nn.Conv2d(num_in, num_out, 1, stride, bias=False), nn.BatchNorm2d(num_out))

    def forward(self, x: Tensor) -> Tensor:
        """(B, num_in, H, W) to (B, 4 num_mid, H / stride, W / stride)."""
        out = F.relu(self.bn1(self.conv1(x)))
        out = F.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        return F.relu(out + (x if self.downsample is None else self.downsample(x)))


class ResNet50(nn.Module):
    """A stem that quarters the image, stages of 3, 4, 6 and 3 blocks, the mean over the image and a linear layer."""

    def __init__(self, num_classes: int, in_channels: int = 3):
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, 64, 7, 2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.maxpool = nn.MaxPool2d(3, 2, padding=1)
        self.layer1 = _stage(64, 64, num_blocks=3, stride=1)
        self.layer2 = _stage(256, 128, num_blocks=4, stride=2)
        self.layer3 = _stage(512, 256, num_blocks=6, stride=2)
        self.layer4 = _stage(1024, 512, num_blocks=3, stride=2)
        self.fc = nn.Linear(2048, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: Tensor) -> Tensor:
        """Logits (B, C) of images (B, in_channels, H, W)."""
        features: Tensor = self.maxpool(F.relu(self.bn1(self.conv1(images))))
        features = self.layer4(self.layer3(self.layer2(self.layer1(features))))
        logits: Tensor = self.fc(features.mean(dim=(2, 3)))
        return logits


def _stage(num_in: int, num_mid: int, num_blocks: int, stride: int) -> nn.Sequential:
    """Blocks, of which the first has the stride and changes the number of channels."""
    first = Bottleneck(num_in, num_mid, stride)
    return nn.Sequential(first, *(Bottleneck(_EXPANSION * num_mid, num_mid, 1) for _ in range(num_blocks - 1)))
