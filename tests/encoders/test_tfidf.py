"""TF-IDF vectors. The oracle is scikit-learn's TfidfVectorizer and TruncatedSVD; for words with marks, the spaces."""

import unicodedata

import numpy as np
import pytest
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

from dividemix.encoders.tfidf import TfidfEncoder
from dividemix.errors import InputError

TEXTS = ["the cat sat", "a cat and a dog", "dogs and cats", "the dog sat down", "Ein Hund schläft", "the cat, the dog"]


def test_vectors_are_those_of_scikit_learn() -> None:
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"(?u)\b\w+\b")
    svd = TruncatedSVD(3, random_state=0)  # half as many as texts
    expected = normalize(svd.fit_transform(vectorizer.fit_transform(TEXTS)))
    encoder, vectors = TfidfEncoder.fitted(TEXTS)
    assert np.abs(vectors.numpy() - expected).max() < 1e-5
    assert np.abs(encoder.encode(TEXTS).numpy() - expected).max() < 1e-5
    new = ["the cat slept", "Hund"]
    assert np.abs(encoder.encode(new).numpy() - normalize(svd.transform(vectorizer.transform(new)))).max() < 1e-5


def test_a_text_without_a_known_word_is_zero() -> None:
    assert not TfidfEncoder.fitted(TEXTS)[0].encode(["xyzzy", ""]).any()


@pytest.mark.parametrize("texts", [["...", "!!"], ["word", "word"]])
def test_texts_without_words_are_refused(texts: list[str]) -> None:
    with pytest.raises(InputError, match="TF-IDF needs"):
        TfidfEncoder.fitted(texts)


def test_words_keep_the_marks_of_their_letters() -> None:
    """Hindi's vowel signs and Yoruba's accents are characters of their own; a phrase's words are between its spaces."""
    texts = ["किताब पढ़ो", "किताब लो", "ọjọ́ kan", "ọjọ́ méjì"]
    encoder, _ = TfidfEncoder.fitted(texts)
    words = {unicodedata.normalize("NFC", word) for text in texts for word in text.split()}
    assert {term for term in encoder.terms if " " not in term} == words


def test_the_same_letter_in_one_or_two_characters_is_the_same_word() -> None:
    texts = ["café noir", "café crème", "thé noir", "thé vert"]
    encoder, _ = TfidfEncoder.fitted([unicodedata.normalize("NFC", text) for text in texts])
    one, two = (encoder.encode([unicodedata.normalize(form, text) for text in texts]) for form in ("NFC", "NFD"))
    assert one.any()
    assert one.equal(two)
