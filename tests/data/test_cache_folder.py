"""Where computed things are kept. Oracle: the rules of the XDG base directories."""

import os
from pathlib import Path

import pytest

from dividemix.data.cache_folder import cache_folder


def test_the_place_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIVIDEMIX_CACHE", "/somewhere")
    assert cache_folder() == Path("/somewhere")
    monkeypatch.delenv("DIVIDEMIX_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/other")
    assert cache_folder() == Path("/other/dividemix")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path(os.path.expanduser("~/.cache/dividemix"))  # noqa: PTH111
