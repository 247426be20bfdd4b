"""A tiny net and tiny data for the tests of the algorithm: smooth, in float64, everything random from a seed."""

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor, nn

NUM_CLASSES = 3
IMAGE_SHAPE = (1, 2, 3)


class TinyNet(nn.Module):
    """Two linear layers with BatchNorm and tanh between: no kink, so finite differences give its gradient."""

    def __init__(self, seed: int, *, dropout: float = 0.0):
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.body = nn.Linear(6, 8, dtype=torch.float64)
            self.norm = nn.BatchNorm1d(8, dtype=torch.float64)
            self.drop = nn.Dropout(dropout)
            self.head = nn.Linear(8, NUM_CLASSES, dtype=torch.float64)

    def forward(self, images: Tensor) -> Tensor:
        """Logits (B, C)."""
        return self.head(self.drop(torch.tanh(self.norm(self.body(images.flatten(1))))))


class TinyData:
    """Noisy labels on separable images; Augment adds a little noise. Remembers every batch it was asked for."""

    def __init__(self, num_samples: int = 40, *, seed: int = 0, noise: float = 0.3):
        generator = torch.Generator().manual_seed(seed)
        true = torch.arange(num_samples) % NUM_CLASSES
        wrong = torch.rand(num_samples, generator=generator) < noise
        self.labels = torch.where(wrong, (true + 1) % NUM_CLASSES, true)
        self.at_once = 512
        centres = torch.randn(NUM_CLASSES, *IMAGE_SHAPE, generator=generator, dtype=torch.float64)
        spread = torch.randn(num_samples, *IMAGE_SHAPE, generator=generator, dtype=torch.float64)
        self.images = centres[true] + 0.5 * spread
        self.asked: list[Tensor] = []  # index batches given to augmented(), in order
        self.views: list[Tensor] = []  # what it gave for them
        self.num_passes = 0  # calls of plain()

    def augmented(self, batches: Iterable[Tensor], generator: torch.Generator) -> Iterator[Tensor]:
        """Each row with noise of its own."""
        for index in batches:
            jitter = torch.randn(len(index), *IMAGE_SHAPE, generator=generator, dtype=torch.float64)
            views = self.images[index] + 0.1 * jitter
            self.asked.append(index.clone())
            self.views.append(views.clone())
            yield views

    def plain(self, batches: Iterable[Tensor]) -> Iterator[Tensor]:
        """The images as they are."""
        self.num_passes += 1
        for index in batches:
            yield self.images[index]


def tiny_nets(*, dropout: float = 0.0, num_nets: int = 2) -> list[nn.Module]:
    """The two nets, with different weights."""
    return [TinyNet(seed=10 + k, dropout=dropout) for k in range(num_nets)]
