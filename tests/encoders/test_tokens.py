"""Tokens as numbers. Oracle: the stand-in tokenizer's own ids."""

import sys
import types
from typing import Any

import pytest
from stand_ins import transformers_of_words

from dividemix.encoders.find import find_encoder
from dividemix.encoders.tokens import is_tokens
from dividemix.errors import InputError


def test_tokens_are_padded_by_minus_one_and_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", transformers_of_words())
    encoder = find_encoder("tokens:words=3")
    assert encoder.takes == "texts"
    assert encoder.encode(["good film", "bad bad bad film", "film"]).tolist() == [[2, 4, -1], [3, 3, 3], [4, -1, -1]]


def test_the_description_changes_with_the_vocabulary_and_the_length(monkeypatch: pytest.MonkeyPatch) -> None:
    described: list[Any] = []
    for words in ("good bad film", "good bad films"):
        monkeypatch.setitem(sys.modules, "transformers", transformers_of_words(words))
        described += [find_encoder(f"tokens:words={length}").describe() for length in (3, 4)]
    keys = [(one["weights"], one["length"]) for one in described]
    assert len(set(keys)) == 4
    assert keys[0][0] == keys[1][0]


@pytest.mark.parametrize("name", ["tokens:words", "tokens:words=", "tokens:words=x", "tokens:words=1"])
def test_the_length_must_be_given(name: str) -> None:
    with pytest.raises(InputError, match=f"encoder '{name}': must end with the number of tokens"):
        find_encoder(name)


def test_what_is_missing_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str, **_: Any) -> Any:
        raise OSError(f"{name} is no folder\nsecond line")

    broken = types.ModuleType("transformers")
    broken.AutoTokenizer = types.SimpleNamespace(from_pretrained=load)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "transformers", broken)
    with pytest.raises(InputError, match="'tokens:x=8' cannot be loaded: x is no folder second line; check the name"):
        find_encoder("tokens:x=8")
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(InputError, match=r"'tokens:x=8' needs transformers .*: pip install transformers"):
        find_encoder("tokens:x=8")


def test_only_names_of_tokens_are_tokens() -> None:
    assert [is_tokens(name) for name in ("tokens:x=8", "transformers:tokens", None)] == [True, False, False]
