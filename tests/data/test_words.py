"""The words of a text. The oracle is the spaces of phrases without punctuation."""

import re
import unicodedata
from typing import Literal

import pytest

from dividemix.data.words import word_pattern

PHRASES = [
    "the cat_1 sat",
    "ọjọ́ kan ọlọ́pàá",
    "किताब पढ़ो हिन्दी",
    "ভাষা বই",
    "می\u200cخواهم بروم",  # noqa: RUF001 (Persian)
    "שָׁלוֹם עולם",
    "tiếng Việt",
    "été ça",
]


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("phrase", PHRASES)
def test_words_are_what_spaces_separate(phrase: str, form: Literal["NFC", "NFD"]) -> None:
    text = unicodedata.normalize(form, phrase)
    assert re.findall(word_pattern(), text) == text.split()


def test_punctuation_and_marks_without_a_letter_are_no_words() -> None:
    assert re.findall(word_pattern(), "«one», two; \u0301 ... - three!") == ["one", "two", "three"]
