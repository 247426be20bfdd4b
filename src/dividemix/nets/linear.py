"""Networks whose only trained part is one linear layer on fixed features: for samples that are vectors."""

import math

import torch
from torch import Tensor, nn


class Linear(nn.Module):
    """One linear layer on the vectors themselves."""

    def __init__(self, num_classes: int, in_features: int):
        super().__init__()
        self.head = nn.Linear(in_features, num_classes)

    def features(self, vectors: Tensor) -> Tensor:
        """What the linear layer gets (B, in_features): the vectors."""
        return vectors

    def forward(self, vectors: Tensor) -> Tensor:
        """Logits (B, C) of vectors (B, in_features)."""
        logits: Tensor = self.head(self.features(vectors))
        return logits


class Fourier(nn.Module):
    """One linear layer on the vectors and on `width` random waves of them: random Fourier features.

    The vectors are standardised. Half of the waves are for a wide Gaussian kernel, half for a narrow one: variances
    D / 2 and D / 8. The waves have unit variance, like the features of a standardised vector.
    """

    directions: Tensor  # (in_features, width)
    shifts: Tensor  # (width,)

    def __init__(self, num_classes: int, in_features: int, width: int):
        super().__init__()
        spread = torch.where(torch.arange(width) % 2 == 0, math.sqrt(in_features / 2), math.sqrt(in_features / 8))
        self.register_buffer("directions", torch.randn(in_features, width) / spread)
        self.register_buffer("shifts", 2 * math.pi * torch.rand(width))
        self.head = nn.Linear(in_features + width, num_classes)

    def features(self, vectors: Tensor) -> Tensor:
        """What the linear layer gets: the vectors, then the waves, (B, in_features + width)."""
        waves = math.sqrt(2) * torch.cos(vectors @ self.directions + self.shifts)
        return torch.cat([vectors, waves], dim=1)

    def forward(self, vectors: Tensor) -> Tensor:
        """Logits (B, C) of vectors (B, in_features)."""
        logits: Tensor = self.head(self.features(vectors))
        return logits
