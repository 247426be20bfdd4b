"""Words that matter. Oracle: a model whose evidence is a sum over words, worked out by hand."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dividemix.report.marked_words import marked_words, parts_of
from dividemix.report.shown import text

_FOR_SPORT = {"goal": 3.0, "match": 2.0, "oven": -2.0, "team": 0.5}
SPORT, FOOD = np.array([0]), np.array([1])


def probs(texts: list[str]) -> NDArray[Any]:
    """The log-odds of sport against food are the sum of the words' values."""
    odds = np.exp([sum(_FOR_SPORT.get(word, 0.0) for word in one.lower().replace(",", " ").split()) for one in texts])
    return np.stack([odds / (1 + odds), 1 / (1 + odds)], axis=1)


def words(one: str, given: NDArray[np.int64], suggested: NDArray[np.int64], most_parts: int = 60) -> list[str]:
    (spans,) = marked_words([one], given, suggested, probs, most_parts=most_parts)
    return [one[start:stop] for start, stop in spans]


def test_words_for_the_suggestion_are_marked_in_their_order() -> None:
    one = "A match, the team, oven and GOAL"
    assert words(one, FOOD, SPORT) == ["match", "GOAL"]  # team counts less than 0.3 of goal
    assert words(one, SPORT, FOOD) == ["oven"]


def test_of_a_long_text_groups_of_words_are_marked() -> None:
    one = " ".join(["the"] * 10 + ["goal"] + ["the"] * 9)
    assert [span[1] - span[0] for span in parts_of(one, 5)].count(len("the the the the")) == 4
    assert words(one, FOOD, SPORT, most_parts=5) == ["the the goal the"]


def test_texts_of_one_word_or_without_any_have_no_marks() -> None:
    assert marked_words(["goal", "...", ""], np.ones(3, int), np.zeros(3, int), probs, most_parts=60) == [[], [], []]
    assert words("nothing known here", FOOD, SPORT) == []


def test_each_text_has_its_own_marks() -> None:
    texts = ["goal here", "...", "an oven here"]
    spans = marked_words(texts, np.array([1, 1, 0]), np.array([0, 0, 1]), probs, most_parts=60)
    assert spans == [[(0, 4)], [], [(3, 7)]]


def test_a_mark_beyond_the_end_of_a_cut_text_is_not_shown() -> None:
    assert text("ab cd", [(0, 2)]) == {"kind": "text", "text": "ab cd", "marks": [[0, 2]]}
    assert text("ab cd") == {"kind": "text", "text": "ab cd"}
    assert text("x" * 5000, [(0, 2), (3999, 4001)])["marks"] == [[0, 2]]


def test_a_word_is_marked_whole_with_its_accents() -> None:
    """An accent that is a character of its own belongs to the word: each span is between two spaces."""
    one = "ọjọ́ kan ọlọ́pàá"
    assert [one[start:stop] for start, stop in parts_of(one, 60)] == one.split()
