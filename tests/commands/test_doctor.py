"""dividemix doctor: what it finds, and that nothing that is broken stops it."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

from dividemix import __version__, examination
from dividemix.cli import main
from dividemix.foreign import PACKAGES

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(autouse=True)
def _small_caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Folders of others are not walked through."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def said(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """The findings by name."""
    assert main(["doctor"]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    return {line[:24].strip(): line[24:].strip() for line in lines}


def test_it_shows_versions_the_machine_and_what_is_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(examination._OPTIONAL, "no_such_package", "nothing: pip install nothing")
    found = said(capsys)
    assert found["dividemix"] == __version__
    assert found["no_such_package"] == "missing; for nothing: pip install nothing"
    assert int(found["cores for this process"]) >= 1
    assert not [finding for finding in found.values() if finding.startswith("broken")]
    assert {"processor", "instruction set", "C++ compiler", "compiled networks", "--device auto"} <= found.keys()


def test_every_extra_and_every_package_of_encoders_is_listed() -> None:
    """Oracle: pyproject.toml, apart from the extras of developers; and what an encoder's name may begin with."""
    purposes = " ".join(examination._OPTIONAL.values())
    extras = PROJECT["optional-dependencies"].keys() - {"benchmarks", "docs", "dev"}
    assert [one for one in extras if not re.search(rf"pip install '?(dividemix\[)?{one}\b", purposes)] == []
    assert {name.replace("-", "_") for name in PACKAGES} - {"net", "tokens"} <= examination._OPTIONAL.keys()


def test_a_broken_package_is_a_finding(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing torch fails, as in a broken installation."""
    monkeypatch.setitem(sys.modules, "torch", None)
    found = said(capsys)
    assert found["torch"].startswith("broken: ")
    assert found["broken"].startswith("ModuleNotFoundError: ")  # of the parts that need it
    assert found["dividemix"] == __version__


def test_a_missing_compiler_is_a_finding(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler -v")
    assert said(capsys)["C++ compiler"].startswith("none: no-such-compiler is not found")


def test_a_compiler_that_fails_is_a_finding(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from dividemix.engine.kernels.library import load_library

    load_library.cache_clear()
    monkeypatch.setenv("CXX", "false")
    assert said(capsys)["own kernels"].startswith("cannot be built: false cannot compile")
