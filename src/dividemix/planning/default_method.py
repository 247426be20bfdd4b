"""The method for a request that names none. No torch import."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dividemix.methods import METHODS
from dividemix.nets.settings import LINEAR
from dividemix.planning.choices import INSTEAD
from dividemix.planning.job import JOB_FIELDS, known_to
from dividemix.planning.presets import DEFAULT, find_preset

if TYPE_CHECKING:
    from dividemix.data.source import Kind

_MAKE_VECTORS = ("text_column", "features_column", "encoder")  # with one of them, samples are or become vectors


def default_method(preset: str, given: Mapping[str, Any], *, kind: "Kind | None" = None) -> str:
    """The preset's method for a request that names none: that for its kind of data, if all settings are known to it.

    Else it is the preset's other method, if that knows them all. Another one fine-tunes texts. The `kind` is that of
    data in memory. Whether a file without these settings has vectors is seen when it is read: until then it is taken
    for one of images, unless only the method for vectors knows the settings.
    """
    found = find_preset(preset)
    is_finetuned = given.get("finetune") in (True, "true")  # a flag is still text here
    if is_finetuned and found.method_for_texts is not None:
        return found.method_for_texts
    if kind in ("vectors", "texts") or any(given.get(name) is not None for name in _MAKE_VECTORS):
        methods = [found.method_for_vectors, found.method]
    elif kind == "rows" or given.get("target") is not None:
        methods = [found.method_for_rows, found.method]
    else:
        methods = [found.method_for_images, found.method]
        if kind is None and Path(str(given.get("data", ""))).suffix:  # a file; a folder or a built-in set has images
            methods.append(found.method_for_vectors)
    possible = [method for method in methods if method is not None]
    for method in possible:
        if _can_train(method, given):
            return method
    is_mistyped = any(not any(known_to(method, {name: None}) for method in METHODS) for name in given)
    return found.method if is_mistyped else possible[0]  # mistyped names are compared with those of most settings


def _can_train(method: str, given: Mapping[str, Any]) -> bool:
    """Whether the method has all given settings, and the net if it needs a certain one."""
    is_free = method != find_preset(DEFAULT).method_for_vectors or given.get("net", LINEAR[0]) in LINEAR
    return is_free and known_to(method, given).keys() == given.keys()


def reason_for(method: str, preset: str, given: Mapping[str, Any], *, kind: "Kind | None" = None) -> str | None:
    """Why a request that names no method gets this one; None if it is the one for its kind of data."""
    of_data = {name: value for name, value in given.items() if name in JOB_FIELDS}
    usual = default_method(preset, of_data, kind=kind)
    if method == usual:
        return None
    own = [name for name in given if name not in known_to(usual, given)]
    if not own:
        return f"{INSTEAD} {usual}, which has no net {given['net']}"
    return f"{INSTEAD} {usual}, because you gave {' and '.join(own)}, which {usual} does not have"


def method_for_vectors(given: Mapping[str, Any]) -> str | None:
    """The preset's own method for vectors; None if the user has given another, or settings or a net of another."""
    method = find_preset(DEFAULT).method_for_vectors
    is_free = given.get("method", method) == method
    return method if method is not None and is_free and _can_train(method, given) else None
