"""dividemix data against what it prints, leaves and returns; what is fetched and found is tested with `data`."""

import io
import os
import signal
from pathlib import Path

import pytest
from archive_server import describe, packed, serving
from rich.console import Console

from dividemix import display
from dividemix.cli import main
from dividemix.commands.data import _CHECKED
from dividemix.data import check, fetch
from dividemix.data.cifar_archives import ARCHIVES

FILES = {"train": bytes(400_000), "test": os.urandom(400_000)}
CONTENT = packed("cifar-100-python", FILES)


@pytest.fixture(autouse=True)
def _workshop(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def site(monkeypatch):
    """A server that takes the place of the official one."""
    with serving(CONTENT) as site:
        monkeypatch.setitem(ARCHIVES, "cifar100", describe("cifar-100-python", FILES, CONTENT, site.url))
        yield site


def complained(capsys, *arguments):
    """The one line of a command that fails and leaves nothing."""
    capsys.readouterr()
    assert main(["data", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("dividemix: error: ")
    assert error.count("\n") == 1
    assert list(Path().iterdir()) == []
    return error


def test_fetch_shows_each_tenth_and_what_came_of_it(capsys, site):
    assert main(["data", "fetch", "cifar100"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "numbers.tar.gz: 0 %"
    assert lines[-2] == "numbers.tar.gz: 100 %"
    assert lines[-1] == "data: cifar100 is there now, its check sums are right"
    assert len(lines) <= 12
    assert sorted(path.name for path in Path("data/cifar-100-python").iterdir()) == ["test", "train"]

    assert main(["data", "fetch", "cifar100"]) == 0
    assert capsys.readouterr().out == "data: cifar100 was there already\n"


def test_fetch_to_and_from_elsewhere(capsys, site):
    site.status = 404
    with serving(CONTENT) as mirror:
        assert main(["data", "fetch", "cifar100", "--root", "a/b", "--url", mirror.url]) == 0
    assert (Path("a/b/cifar-100-python/test")).read_bytes() == FILES["test"]
    assert site.asked == []


def test_fetch_on_a_terminal_has_a_bar(capsys, site, monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(display, "console", Console(file=screen, force_terminal=True, width=120))
    assert main(["data", "fetch", "cifar100"]) == 0
    assert "numbers.tar.gz" in screen.getvalue()
    assert "100%" in screen.getvalue()
    assert capsys.readouterr().out.count("\n") == 1


def test_fetch_that_fails(capsys, site):
    site.status = 404
    assert "404" in complained(capsys, "fetch", "cifar100")
    assert "https://" in complained(capsys, "fetch", "cifar100", "--url", "nowhere")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_fetch_that_is_interrupted_says_how_to_go_on(capsys, monkeypatch, number, code):
    monkeypatch.setattr(fetch, "fetch", lambda *_, **__: os.kill(os.getpid(), number))
    assert main(["data", "fetch", "cifar10"]) == code
    assert capsys.readouterr().err == f"stopped by {number.name}: the same command goes on from here\n"


def test_check_says_what_is_missing_and_what_is_expected(capsys):
    assert main(["data", "check", "cifar10", "--root", "data"]) == 2
    said = capsys.readouterr()
    assert said.out.splitlines()[0] == "missing  data: no such folder"
    assert said.out.splitlines()[-1] == "cifar10: not usable as it is: 1 missing"
    assert check.LAYOUTS["cifar10"] in said.out
    assert said.err == ""


def test_check_of_what_can_be_used(capsys, monkeypatch):
    found = (check.Finding("ok", "data/a", "1 image"), check.Finding("note", "data/b"))
    monkeypatch.setitem(check.CHECKS, "webvision", lambda root, decode, progress: iter(found))
    assert main(["data", "check", "webvision", "--root", "data", "--decode"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["ok       data/a: 1 image", "note     data/b"]
    assert lines[-1] == "webvision: usable"


def test_all_that_can_be_checked_can_be_asked_for():
    assert set(_CHECKED) == set(check.CHECKS)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "COMMAND"),
        (["fetch"], "NAME"),
        (["fetch", "fashion"], "cifar10"),
        (["fetch", "clothing1m"], "given out by its authors"),
        (["check", "cifar10"], "--root"),
        (["check", "mnist", "--root", "x"], "clothing1m"),
        (["fetch", "cifar10", "--rot", "x"], "did you mean --root?"),
    ],
)
def test_mistakes_end_in_one_line(capsys, arguments, told):
    assert told in complained(capsys, *arguments)
