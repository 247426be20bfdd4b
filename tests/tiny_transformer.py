"""A tiny transformer of texts with random weights, in float64, and tokens with noisy labels."""

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from dividemix.nets.token_net import TokenNet

NUM_CLASSES, NUM_WORDS, LENGTH, WIDTH = 3, 12, 6, 8


class TinyBody(nn.Module):
    """Word vectors and one layer of attention, called as a model of the package transformers."""

    def __init__(self, dropout: float = 0.1):
        super().__init__()
        self.words = nn.Embedding(NUM_WORDS, WIDTH)
        self.layer = nn.TransformerEncoderLayer(WIDTH, 2, 16, dropout, batch_first=True)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Any, ...]:
        """A vector for each token, the first of a tuple."""
        return (self.layer(self.words(input_ids), src_key_padding_mask=attention_mask == 0),)


def tiny_token_net(seed: int = 0, *, dropout: float = 0.1) -> TokenNet:
    """The body with a head of three classes."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = TokenNet(TinyBody(dropout), WIDTH, NUM_CLASSES).double()
    net.head[2] = nn.Dropout(dropout)
    return net


class TinyTexts:
    """Texts of one to six words, padded by -1; each class has its own words, and a third of the labels is wrong."""

    at_once = 512

    def __init__(self, num_samples: int = 40, *, seed: int = 0):
        generator = torch.Generator().manual_seed(seed)
        true = torch.arange(num_samples) % NUM_CLASSES
        words = 4 * true[:, None] + torch.randint(4, (num_samples, LENGTH), generator=generator)
        lengths = torch.randint(1, LENGTH + 1, (num_samples, 1), generator=generator)
        self.tokens = torch.where(torch.arange(LENGTH) < lengths, words, -1).float()
        wrong = torch.rand(num_samples, generator=generator) < 0.3
        self.labels = torch.where(wrong, (true + 1) % NUM_CLASSES, true)
        self.asked: list[Tensor] = []

    def augmented(self, batches: Iterable[Tensor], generator: torch.Generator) -> Iterator[Tensor]:
        """The tokens as they are, remembering which were asked for."""
        for index in batches:
            self.asked.append(index)
            yield self.tokens[index]

    def plain(self, batches: Iterable[Tensor]) -> Iterator[Tensor]:
        """The tokens as they are."""
        for index in batches:
            yield self.tokens[index]
