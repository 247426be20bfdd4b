"""The encoder of texts where none is named. Oracle: stand-ins for the two packages, and a cache that lacks one file."""

import importlib.util
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from dividemix.errors import InputError
from dividemix.planning.plan import make_draft
from dividemix.planning.text_encoder import MULTILINGUAL, text_encoder

HAVE = f"sentence-transformers:{MULTILINGUAL}"


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The package is installed; the set has the files that the cache lacks."""
    missing: set[str] = set()

    def find(repository: str, file: str) -> Any:
        assert repository == MULTILINGUAL
        return None if file in missing else f"cache/{file}"

    hub = types.ModuleType("huggingface_hub")
    hub.try_to_load_from_cache = find  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    return missing


def test_a_multilingual_encoder_that_is_on_the_disk_is_taken(cache: set[str]) -> None:
    choice = text_encoder()
    assert (choice.name, choice.value) == ("encoder", HAVE)
    assert "on the disk" in choice.reason


@pytest.mark.parametrize("file", ["modules.json", "model.safetensors", "tokenizer.json"])
def test_an_incomplete_one_is_not(cache: set[str], file: str) -> None:
    cache.add(file)
    choice = text_encoder()
    assert choice.value == "tfidf"
    assert "paraphrase-multilingual-MiniLM-L12-v2 is not in the cache" in choice.reason


def test_without_the_package_words_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert text_encoder().value == "tfidf"
    assert "sentence-transformers is not installed" in text_encoder().reason


def test_a_broken_package_is_no_reason_to_stop(cache: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert text_encoder().value == "tfidf"


def test_only_texts_without_an_encoder_get_it(cache: set[str], tmp_path: Path) -> None:
    def chosen(preset: str = "default", **given: Any) -> tuple[str | None, list[str]]:
        draft = make_draft({"data": "news.csv"} | given, preset=preset)
        return draft.job.encoder, [choice.name for choice in draft.choices]

    assert chosen(text_column="text") == (HAVE, ["encoder"])
    assert chosen(text_column="text", encoder="tfidf") == ("tfidf", [])
    assert chosen() == (None, [])
    assert chosen(preset="clothing1m", text_column="text") == (None, [])
    assert chosen(text_column="text", encoder="transformers:x", finetune=True) == ("transformers:x", [])
    assert make_draft({"data": "texts"}, preset="default", kind="texts").job.encoder == HAVE


@pytest.mark.parametrize(
    ("settings", "minutes", "message"),
    [
        ({}, 5.0, "minutes cannot be used with finetune: remove one of them"),
    ],
)
def test_what_fine_tuning_cannot_do_is_refused(settings: dict[str, Any], minutes: float, message: str) -> None:
    given = {"data": "news.csv", "text_column": "text", "encoder": "transformers:x", "finetune": True} | settings
    with pytest.raises(InputError, match=message):
        make_draft(given, minutes=minutes)
