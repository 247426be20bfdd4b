"""The documentation site is built without a warning. Oracle: Sphinx, and the names that the package exports."""

import subprocess
import sys
from pathlib import Path

import pytest

import dividemix

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the pages."""
    for name in ("sphinx", "myst_parser", "furo"):
        pytest.importorskip(name)
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", f"{folder}/.doctrees"]
    done = subprocess.run([*command, DOCS, folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
def test_every_page_is_built(site: Path) -> None:
    pages = {path.relative_to(DOCS).with_suffix(".html") for path in DOCS.rglob("*.md")}
    assert {path for path in pages if not (site / path).is_file()} == set()


@pytest.mark.slow
def test_the_reference_has_every_public_name(site: Path) -> None:
    page = (site / "api.html").read_text(encoding="utf-8")
    named = {name for name in dividemix.__all__ if name not in ("METHODS", "PRESETS")}  # dicts, shown by commands
    assert {name for name in named if f'.{name}"' not in page} == set()


@pytest.mark.slow
def test_a_link_to_the_log_leads_to_its_page(site: Path) -> None:
    assert 'href="log.html"' in (site / "speed.html").read_text(encoding="utf-8")
    assert "2026-11-17" in (site / "log.html").read_text(encoding="utf-8")
