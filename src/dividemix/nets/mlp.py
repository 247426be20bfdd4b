"""A network of two hidden layers for samples that are vectors of numbers, such as the rows of a table."""

from torch import Tensor, nn


class MLP(nn.Module):
    """Linear layer, BatchNorm and ReLU twice, width units each, then a linear layer."""

    def __init__(self, num_classes: int, in_features: int, width: int):
        super().__init__()
        layers: list[nn.Module] = []
        for num_in in (in_features, width):
            layers += [nn.Linear(num_in, width, bias=False), nn.BatchNorm1d(width), nn.ReLU()]
        self.hidden = nn.Sequential(*layers)
        self.head = nn.Linear(width, num_classes)

    def forward(self, features: Tensor) -> Tensor:
        """Logits (B, C) of features (B, in_features)."""
        logits: Tensor = self.head(self.hidden(features))
        return logits
