"""tokens:MODEL=LENGTH: the tokens of a text, as a transformer of that name or folder reads them, for fine-tuning.

A text becomes LENGTH numbers: the positions of its tokens in the vocabulary, then -1. Longer texts are cut.
"""

import hashlib
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from dividemix.encoders.encoder import Encoder, Sample
from dividemix.errors import InputError
from dividemix.optional import check_folder, import_optional, loading, quiet

SOURCE = "tokens"
_ADVICE = "check the name, connect to the network once, or give a folder that has the model"


class TokenIds:
    """A tokenizer."""

    takes: ClassVar[Sample] = "texts"

    def __init__(self, name: str, tokenizer: Any, length: int):
        self._name, self._tokenizer, self._length = name, tokenizer, length

    def encode(self, batch: Any) -> Tensor:
        """Numbers (R, LENGTH) of a list of R texts."""
        rows = self._tokenizer(list(batch), truncation=True, max_length=self._length)["input_ids"]
        numbers = np.full((len(rows), self._length), -1, dtype=np.float32)
        for i, row in enumerate(rows):
            numbers[i, : len(row)] = row
        return torch.from_numpy(numbers)

    def describe(self) -> dict[str, Any]:
        """As `Encoder.describe`: by the vocabulary."""
        words = repr(sorted(self._tokenizer.get_vocab().items(), key=lambda item: (item[1], item[0])))
        digest = hashlib.blake2b(words.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        return {"name": self._name, "weights": digest, "length": self._length}


def is_tokens(encoder: str | None) -> bool:
    """Whether an encoder of this name gives tokens, whose numbers have no scale."""
    return encoder is not None and encoder.startswith(f"{SOURCE}:")


def load(model: str, length: str, name: str) -> Encoder:
    """The tokenizer. Raises InputError if it cannot be had."""
    if not length.isdecimal() or int(length) < 2:
        raise InputError(f"encoder {name!r}: must end with the number of tokens of a text, as in {SOURCE}:MODEL=128")
    transformers = import_optional("transformers", name, "transformers")
    check_folder(model, name)
    with loading(name, _ADVICE), quiet(transformers):
        tokenizer = transformers.AutoTokenizer.from_pretrained(model, trust_remote_code=False)
    return TokenIds(name, tokenizer, int(length))
