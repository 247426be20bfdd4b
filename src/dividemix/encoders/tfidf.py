"""Vectors of texts without a pretrained model: TF-IDF of words and word pairs, then truncated SVD (scikit-learn).

    tf = 1 + log(count)    idf = 1 + log((1 + N) / (1 + df))    x = l2(tf idf)    vector = l2(x V)

It is fitted on the training texts. What it learned are plain terms and numbers, which a model's files hold.
Shapes: N texts, T terms, D numbers of a vector.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from dividemix.data.words import plain, word_pattern
from dividemix.encoders.encoder import Sample
from dividemix.errors import InputError
from dividemix.foreign import TFIDF
from dividemix.optional import import_optional

MAX_TERMS, MAX_LENGTH = 30_000, 256


class TfidfEncoder(nn.Module):
    """A fitted encoder: the terms, and for each its idf and its row of the projection."""

    takes: ClassVar[Sample] = "texts"

    def __init__(self, terms: Sequence[str], length: int):
        super().__init__()
        self.terms = list(terms)
        self.idf = nn.Buffer(torch.zeros(len(self.terms)))
        self.projection = nn.Buffer(torch.zeros(len(self.terms), length))

    @classmethod
    def fitted(cls, texts: Sequence[str]) -> tuple["TfidfEncoder", Tensor]:
        """The encoder for these N training texts, and their vectors (N, D). Raises InputError if they have no words."""
        decomposition = import_optional("sklearn.decomposition", "text", "scikit-learn")
        least = 2 if len(texts) > 20 else 1  # texts that a term must occur in
        vectorizer = _vectorizer(min_df=least, max_features=MAX_TERMS)
        try:
            weighted = vectorizer.fit_transform(texts)
        except ValueError as error:
            raise InputError("the texts have no words in common: TF-IDF needs words; name another encoder") from error
        length = min(MAX_LENGTH, max(2, len(texts) // 2), min(weighted.shape) - 1)
        if length < 1:
            raise InputError("the texts have only one word: TF-IDF needs more; name another encoder")
        svd = decomposition.TruncatedSVD(length, random_state=0).fit(weighted)
        encoder = cls(vectorizer.get_feature_names_out().tolist(), length)
        encoder.idf.copy_(torch.from_numpy(vectorizer.idf_.astype(np.float32)))
        encoder.projection.copy_(torch.from_numpy(svd.components_.T.astype(np.float32)))
        return encoder, encoder._projected(weighted)

    def encode(self, batch: Any) -> Tensor:
        """As `Encoder.encode`."""
        vectorizer = _vectorizer(vocabulary={term: i for i, term in enumerate(self.terms)})
        vectorizer.idf_ = self.idf.double().cpu().numpy()
        return self._projected(vectorizer.transform(list(batch)))

    def _projected(self, weighted: Any) -> Tensor:
        """Vectors (N, D) of length 1, or 0, of a sparse matrix (N, T) of weighted counts."""
        vectors = weighted @ self.projection.double().cpu().numpy()
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return torch.from_numpy((vectors / np.where(norms > 0, norms, 1)).astype(np.float32))

    def describe(self) -> dict[str, Any]:
        """As `Encoder.describe`: the texts that it was fitted on decide the rest."""
        return {"name": TFIDF, "weights": None, "length": self.projection.shape[1], "num_terms": len(self.terms)}


def _vectorizer(**settings: Any) -> Any:
    text = import_optional("sklearn.feature_extraction.text", "text", "scikit-learn")
    return text.TfidfVectorizer(
        ngram_range=(1, 2), sublinear_tf=True, preprocessor=plain, token_pattern=word_pattern(), **settings
    )
