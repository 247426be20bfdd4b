"""The encoder of texts where none is named: a multilingual one that is on the disk, or TF-IDF. No torch import."""

import importlib.util
from typing import Any

from dividemix.foreign import TFIDF
from dividemix.planning.choices import Choice

MULTILINGUAL = "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"  # 50 languages, 384 numbers
_FILES = ("modules.json", "config.json", "1_Pooling/config.json", "model.safetensors", "tokenizer.json")
_PACKAGE = "sentence_transformers"


def text_encoder() -> Choice:
    """The choice, with its reason. Nothing is downloaded."""
    name = MULTILINGUAL.rpartition("/")[2]
    if importlib.util.find_spec(_PACKAGE) is None:
        return Choice("encoder", TFIDF, "it needs no download; sentence-transformers is not installed")
    if not _is_on_disk():
        return Choice("encoder", TFIDF, f"it needs no download; {name} is not in the cache of its hub")
    return Choice("encoder", f"sentence-transformers:{MULTILINGUAL}", "small, multilingual, and on the disk")


def _is_on_disk() -> bool:
    """Whether the hub's cache has every file of the model."""
    try:
        hub: Any = importlib.import_module("huggingface_hub")
        return all(isinstance(hub.try_to_load_from_cache(MULTILINGUAL, file), str) for file in _FILES)
    except Exception:  # a broken installation raises anything, and TF-IDF always works
        return False
