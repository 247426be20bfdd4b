"""The input of a model that was trained on texts: an encoder turns them into vectors, which are standardised.

The encoder that was fitted on the training texts is part of the model's files; a pretrained one is named, and loaded by
that name. Shapes: N texts, D numbers of a vector.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dividemix.data.source import Kind
from dividemix.data.texts import check_texts
from dividemix.encoders.encoder import Encoder
from dividemix.encoders.find import find_encoder
from dividemix.encoders.tfidf import MAX_LENGTH, MAX_TERMS, TfidfEncoder
from dividemix.errors import InputError
from dividemix.foreign import TFIDF
from dividemix.model.inputs import VectorInput


class TextInput(nn.Module):
    """Texts; the nets and `forward` get their vectors."""

    kind: ClassVar[Kind] = "texts"
    raw_type: ClassVar[torch.dtype] = torch.float32

    def __init__(self, name: str, encoder: Encoder, vectors: VectorInput, column: str | None = None):
        super().__init__()
        self.column = column  # of a table, which had the texts
        self.name, self.vectors = name, vectors
        self.shape = self.net_shape = vectors.net_shape
        # The weights of `encoder` are not part of the model's files; those of `fitted` are.
        self.fitted = encoder if isinstance(encoder, TfidfEncoder) else None
        self.encoder: Any = None if self.fitted is not None else encoder

    def forward(self, vectors: Tensor) -> Tensor:
        """The nets' input (N, D) of the vectors (N, D) that the encoder gives."""
        return self.vectors(vectors)  # type: ignore[no-any-return]

    def describe(self) -> dict[str, Any]:
        """The part `preprocessing` of config.json."""
        about = {"terms": self.fitted.terms} if self.fitted is not None else {"encoder_is": self.encoder.describe()}
        return {"encoder": self.name, "text_column": self.column, **about, **self.vectors.describe()}

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "TextInput":
        """The input that `describe` described. Raises as `EncodedInput.of`."""
        vectors = VectorInput.of(values)
        column = values.get("text_column")  # models of 0.1 have none
        if not isinstance(column, str | None):
            raise ValueError("text_column must be the name of a column")
        if values["encoder"] == TFIDF:
            terms = values["terms"]
            if not (isinstance(terms, list) and terms and all(isinstance(term, str) for term in terms)):
                raise ValueError("terms must be a list of words")
            if len(set(terms)) < len(terms):
                raise ValueError("a term is listed twice")
            if len(terms) > MAX_TERMS or vectors.shape[0] > MAX_LENGTH:  # before memory is taken
                raise ValueError(f"num_features is {vectors.shape[0]}, with {len(terms)} terms: no model has so many")
            return cls(TFIDF, TfidfEncoder(terms, vectors.shape[0]), vectors, column)
        encoder = find_encoder(values["encoder"])
        if encoder.describe().get("weights") != values["encoder_is"].get("weights"):
            raise InputError(f"encoder {values['encoder']!r} has other weights than in the training: give those")
        return cls(values["encoder"], encoder, vectors, column)

    def checked(self, texts: NDArray[Any]) -> NDArray[np.float32]:
        """The vectors (N, D) of texts (N,). Raises InputError for anything else."""
        if not len(texts):
            return np.empty((0, *self.shape), dtype=np.float32)
        check_texts(texts, "texts")
        encoder = self.encoder if self.fitted is None else self.fitted
        return np.asarray(encoder.encode(texts.tolist()).numpy(), dtype=np.float32)

    def examples(self) -> NDArray[Any]:
        """Five vectors to compare programs with."""
        return self.vectors.examples()
