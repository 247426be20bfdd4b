"""The registry of built-in data sets against the rest of the package: every entry must name things that exist."""

from inspect import signature
from pkgutil import resolve_name

import pytest

from dividemix.data.builtin import BUILT_IN, BuiltIn
from dividemix.data.noise import parse_noise
from dividemix.planning.presets import PRESETS

entries = pytest.mark.parametrize("entry", BUILT_IN.values(), ids=BUILT_IN)


def parameters(reference: str) -> list[str]:
    return list(signature(resolve_name(reference)).parameters)


@entries
def test_references_name_functions_of_the_documented_parameters(entry: BuiltIn) -> None:
    assert parameters(entry.reader) == (["root", "image_size"] if entry.lister else ["root"])
    if entry.lister:
        assert parameters(entry.lister) == ["root"]
    if entry.checker:
        assert parameters(entry.checker) == ["name", "root", "decode", "progress"]


@entries
def test_presets_exist_for_noise_that_can_be_made(entry: BuiltIn) -> None:
    assert {entry.default_preset, *entry.presets.values()} <= PRESETS.keys()
    for noise in entry.presets:
        assert parse_noise(noise).kind != "none"


@entries
def test_what_can_be_checked_has_a_layout_and_what_is_outside_of_the_package_can_be_checked(entry: BuiltIn) -> None:
    assert bool(entry.checker) == bool(entry.layout) == entry.needs_root
    assert all(name.rpartition("/")[2] in entry.layout for name in entry.lists)
    assert bool(entry.lists) == bool(entry.lister)


@entries
def test_the_whole_of_a_set_without_lists_is_known(entry: BuiltIn) -> None:
    """The command reproduce compares it with what it finds."""
    if entry.needs_root and not entry.lister:
        assert entry.num_images.keys() == {"train", "test"}
