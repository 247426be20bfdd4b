"""Code of the user. Oracle: the search path of Python before and after."""

import sys
from pathlib import Path

import pytest

from dividemix.errors import InputError
from dividemix.foreign import import_foreign


def test_an_import_leaves_the_search_path_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "their_code.py").write_text("THING = 7\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])  # the working directory comes first
    before = list(sys.path)
    assert import_foreign("net", "their_code:THING") == 7
    assert sys.path == before
    with pytest.raises(InputError, match="net 'nowhere:THING' cannot be imported"):
        import_foreign("net", "nowhere:THING")
    assert sys.path == before
