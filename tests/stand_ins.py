"""Encoders for tests: functions that make them, as a user's own module would have, and how often they computed."""

import types
from typing import Any

import numpy as np
import torch
from torch import nn

COUNTS = {"images": 0}


class Patches(nn.Module):
    """Means of a grid of patches: vectors that tell the toy images apart; 8 x 8 pixels, 3 channels."""

    image_size = 8
    mean = (0.5, 0.5, 0.5)
    std = (0.25, 0.25, 0.25)

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(scale))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Vectors (R, 48) of images (R, 3, 8, 8)."""
        if not torch.compiler.is_compiling():
            COUNTS["images"] += len(images)
        pooled: torch.Tensor = nn.functional.avg_pool2d(images, 2).flatten(1)
        return self.scale * pooled


class Plain:
    """An encoder that is no module: the mean of each quarter."""

    takes = "images"

    def encode(self, batch: Any) -> Any:
        """Vectors (R, 4)."""
        images = np.asarray(batch, dtype=np.float32)
        return images.reshape(len(images), 2, 4, 2, 4, -1).mean(axis=(2, 4, 5)).reshape(len(images), -1)


def patches() -> nn.Module:
    """A module."""
    return Patches()


def plain() -> Any:
    """An object."""
    return Plain()


def broken() -> Any:
    """A function that fails."""
    raise RuntimeError("no weights here\nsecond line")


def nothing() -> Any:
    """A function that makes no encoder."""
    return 7


class WordBody(nn.Module):
    """A transformer's body without layers: a vector for each word, then dropout."""

    config = types.SimpleNamespace(hidden_size=16)
    main_input_name = "input_ids"

    def __init__(self, num_words: int) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(5)
            self.words = nn.Embedding(num_words, 16)
        self.drop = nn.Dropout(0.1)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> Any:
        """A vector for each token."""
        return (self.drop(self.words(input_ids)),)


def transformers_of_words(words: str = "good bad film") -> Any:
    """A stand-in for the package transformers: every word is a token; 0 pads, 1 is a word that it does not know."""
    vocabulary = {"[PAD]": 0, "[UNK]": 1} | {word: 2 + i for i, word in enumerate(words.split())}

    class Tokenizer:
        def __call__(self, texts: list[str], *, truncation: bool, max_length: int) -> dict[str, list[list[int]]]:
            assert truncation
            return {"input_ids": [[vocabulary.get(word, 1) for word in text.split()][:max_length] for text in texts]}

        def get_vocab(self) -> dict[str, int]:
            return vocabulary

    def load(name: str, **_: Any) -> WordBody:
        return WordBody(len(vocabulary))

    package = types.ModuleType("transformers")
    package.AutoTokenizer = types.SimpleNamespace(from_pretrained=lambda name, **_: Tokenizer())  # type: ignore[attr-defined]
    package.AutoModel = types.SimpleNamespace(from_pretrained=load)  # type: ignore[attr-defined]
    return package
