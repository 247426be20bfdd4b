"""dividemix data against what it prints, leaves and returns; what is fetched and found is tested with `data`."""

import dataclasses
import io
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from archive_server import Site, describe, packed, serving
from rich.console import Console

from dividemix import display
from dividemix.cli import main
from dividemix.data import check, check_listed, fetch
from dividemix.data.builtin import BUILT_IN

FILES = {"train": bytes(400_000), "test": os.urandom(400_000)}
CONTENT = packed("cifar-100-python", FILES)


@pytest.fixture(autouse=True)
def _workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A server that takes the place of the official one."""
    with serving(CONTENT) as site:
        archive = describe("cifar-100-python", FILES, CONTENT, site.url)
        monkeypatch.setitem(BUILT_IN, "cifar100", dataclasses.replace(BUILT_IN["cifar100"], archive=archive))
        yield site


def complained(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line of a command that fails and leaves nothing."""
    capsys.readouterr()
    assert main(["data", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("dividemix: error: ")
    assert error.count("\n") == 1
    assert list(Path().iterdir()) == []
    return error


def test_fetch_shows_each_tenth_and_what_came_of_it(capsys: pytest.CaptureFixture[str], site: Site) -> None:
    assert main(["data", "fetch", "cifar100"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "numbers.tar.gz: 0 %"
    assert lines[-2] == "numbers.tar.gz: 100 %"
    assert lines[-1] == "data: cifar100 fetched, checksums are right"
    assert len(lines) <= 12
    assert sorted(path.name for path in Path("data/cifar-100-python").iterdir()) == ["test", "train"]

    assert main(["data", "fetch", "cifar100"]) == 0
    assert capsys.readouterr().out == "data: cifar100 exists already\n"


def test_fetch_to_and_from_elsewhere(capsys: pytest.CaptureFixture[str], site: Site) -> None:
    site.status = 404
    with serving(CONTENT) as mirror:
        assert main(["data", "fetch", "cifar100", "--root", "a/b", "--url", mirror.url]) == 0
    assert (Path("a/b/cifar-100-python/test")).read_bytes() == FILES["test"]
    assert site.asked == []


def test_fetch_on_a_terminal_has_a_bar(
    capsys: pytest.CaptureFixture[str], site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(display, "console", Console(file=screen, force_terminal=True, width=120))
    assert main(["data", "fetch", "cifar100"]) == 0
    assert "numbers.tar.gz" in screen.getvalue()
    assert "100%" in screen.getvalue()
    assert capsys.readouterr().out.count("\n") == 1


def test_fetch_that_fails(capsys: pytest.CaptureFixture[str], site: Site) -> None:
    site.status = 404
    assert "404" in complained(capsys, "fetch", "cifar100")
    assert "https://" in complained(capsys, "fetch", "cifar100", "--url", "nowhere")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_fetch_that_is_interrupted_says_how_to_go_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, number: signal.Signals, code: int
) -> None:
    monkeypatch.setattr(fetch, "fetch", lambda *_, **__: os.kill(os.getpid(), number))
    assert main(["data", "fetch", "cifar10"]) == code
    assert capsys.readouterr().err == f"stopped by {number.name}: run the same command to resume\n"


def test_check_says_what_is_missing_and_what_is_expected(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "check", "cifar10", "--root", "data"]) == 2
    said = capsys.readouterr()
    assert said.out.splitlines()[0] == "missing  data: no such folder"
    assert said.out.splitlines()[-1] == "cifar10: not usable: 1 missing"
    assert BUILT_IN["cifar10"].layout in said.out
    assert said.err == ""


def test_check_of_what_can_be_used(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    found = (check.Finding("ok", "data/a", "1 image"), check.Finding("note", "data/b"))
    monkeypatch.setattr(check_listed, "check_listed", lambda name, root, decode, progress: iter(found))
    assert main(["data", "check", "webvision", "--root", "data", "--decode"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["ok       data/a: 1 image", "note     data/b"]
    assert lines[-1] == "webvision: usable"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "COMMAND"),
        (["fetch"], "NAME"),
        (["fetch", "fashion"], "fashion is part of the package: dividemix train fashion needs no files"),
        (["fetch", "cifar"], "unknown data set 'cifar': did you mean cifar10?"),
        (["fetch", "clothing1m"], "cannot be fetched: get it from its authors"),
        (["check", "cifar10"], "--root"),
        (["check", "nonsense", "--root", "x"], "clothing1m"),
        (["fetch", "cifar10", "--rot", "x"], "did you mean --root?"),
    ],
)
def test_mistakes_end_in_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    assert message in complained(capsys, *arguments)
