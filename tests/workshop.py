"""The command line at work in a directory with toy.npz: what it printed, returned and left there."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from toys import SETTINGS, tree

from dividemix.cli import main

_QUICK: dict[str, Any] = SETTINGS | {"epochs": 2, "warmup_epochs": 1}
ENTRY = "from dividemix.cli import main; raise SystemExit(main())"


def flags_of(settings: dict[str, Any]) -> list[str]:
    """The settings as words of the command line."""
    return [word for name, value in settings.items() for word in (f"--{name}", str(value))]


QUICK = ["toy.npz", *flags_of(_QUICK)]  # two epochs, one of them warm-up
WITHOUT_WARMUP = ["toy.npz", *flags_of({name: _QUICK[name] for name in _QUICK if name != "warmup_epochs"})]


def succeed(*arguments: str) -> None:
    """Train, without an error."""
    assert main(["train", *arguments]) == 0


def fail(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> str:
    """The line on stderr of a command that must fail and change nothing."""
    capsys.readouterr()
    before = tree_here()
    assert main(arguments) == 2
    return the_line(capsys.readouterr().err, before)


def the_line(error: str, before: dict[str, Any]) -> str:
    """The one line of an error; the working directory must be as it was before."""
    assert error.startswith("dividemix: error: ")
    assert error.endswith("\n")
    assert error.count("\n") == 1
    assert "Traceback" not in error
    assert tree_here() == before
    return error


def tree_here() -> dict[str, Any]:
    """Every path below the working directory with its content; in a checkout these would be gigabytes."""
    assert not Path("pyproject.toml").exists(), "work in a folder of the test's own: monkeypatch.chdir(tmp_path)"
    return tree(Path())


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a command that ends in SystemExit(0) prints."""
    with pytest.raises(SystemExit) as caught:
        main(list(arguments))
    assert caught.value.code == 0
    return capsys.readouterr().out


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The settings that --print_config shows."""
    succeed(*arguments, "--print_config")
    return capsys.readouterr().out


def spawn(code: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """A Python process that runs the code."""
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
