"""A small convolutional network for small images: seconds an epoch on two cores."""

from torch import Tensor, nn


class SmallCNN(nn.Module):
    """Three 3 x 3 convolutions, each halving the image, then a hidden and a linear layer on a 3 x 3 map."""

    def __init__(self, num_classes: int, in_channels: int, width: int):
        super().__init__()
        stages: list[nn.Module] = []
        num_in = in_channels
        for num_out in (width, 2 * width, 4 * width):
            stages += [
                nn.Conv2d(num_in, num_out, 3, padding=1, bias=False),
                nn.MaxPool2d(2),
                nn.BatchNorm2d(num_out),
                nn.ReLU(),
            ]
            num_in = num_out
        # 28 pixels halved three times are 3: the pooling changes only images of another size.
        self.features = nn.Sequential(*stages, nn.AdaptiveAvgPool2d(3), nn.Flatten())
        num_hidden = 16 * width
        self.head = nn.Sequential(
            nn.Linear(9 * num_in, num_hidden), nn.BatchNorm1d(num_hidden), nn.ReLU(), nn.Linear(num_hidden, num_classes)
        )

    def forward(self, images: Tensor) -> Tensor:
        """Logits (B, C) of images (B, in_channels, H, W)."""
        logits: Tensor = self.head(self.features(images))
        return logits
