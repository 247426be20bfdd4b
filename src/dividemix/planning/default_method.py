"""The method for a request that names none. No torch import."""

from collections.abc import Mapping
from typing import Any

from dividemix.nets.settings import LINEAR
from dividemix.planning.job import JOB_FIELDS, known_to
from dividemix.planning.presets import DEFAULT, find_preset

_MAKE_VECTORS = ("text_column", "features_column", "encoder")  # with one of them, samples are or become vectors


def default_method(preset: str, given: Mapping[str, Any], *, is_rows: bool = False) -> str:
    """The preset's method for a request that names none: that for its kind of data, if all settings are known to it.

    Another one fine-tunes texts. Whether a file without these settings has vectors is seen when it is read.
    """
    found = find_preset(preset)
    is_finetuned = given.get("finetune") in (True, "true")  # a flag is still text here
    if is_finetuned and found.method_for_texts is not None:
        return found.method_for_texts
    if any(given.get(name) is not None for name in _MAKE_VECTORS):
        return (method_for_vectors(given) if preset == DEFAULT else None) or found.method
    is_rows = is_rows or given.get("target") is not None
    special = found.method_for_rows if is_rows else found.method_for_images
    return special if special is not None and known_to(special, given).keys() == given.keys() else found.method


def reason_for(method: str, preset: str, given: Mapping[str, Any], *, is_rows: bool = False) -> str | None:
    """Why a request that names no method gets this one; None if it is the one for its kind of data."""
    of_data = {name: value for name, value in given.items() if name in JOB_FIELDS}
    usual = default_method(preset, of_data, is_rows=is_rows)
    if method == usual:
        return None
    own = [name for name in given if name not in known_to(usual, given)]
    if not own:
        return f"{usual} has no net {given['net']}"
    return f"{' and '.join(own)} {'is a setting' if len(own) == 1 else 'are settings'} of it, not of {usual}"


def method_for_vectors(given: Mapping[str, Any]) -> str | None:
    """The preset's own method for vectors; None if the user has given another, or settings or a net of another."""
    method = find_preset(DEFAULT).method_for_vectors
    fits = method is not None and known_to(method, given).keys() == given.keys()
    is_free = given.get("method", method) == method and given.get("net", LINEAR[0]) in LINEAR
    return method if fits and is_free else None
