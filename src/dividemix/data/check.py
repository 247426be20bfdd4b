"""Check a built-in data set in a folder: each official file is ok, missing or damaged."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Literal

from dividemix.data.builtin import BUILT_IN

State = Literal["ok", "note", "missing", "damaged"]
Progress = Callable[[int, int], None]  # images decoded, images in total


@dataclass(frozen=True)
class Finding:
    """The state of one file or split. A "note" can be used, but differs from the official data set."""

    state: State
    what: str
    detail: str = ""


@dataclass(frozen=True)
class Checked:
    """The findings, and the expected layout in words."""

    findings: tuple[Finding, ...]
    layout: str

    @property
    def usable(self) -> bool:
        """Whether nothing is missing or damaged."""
        return all(finding.state in ("ok", "note") for finding in self.findings)


def check(name: str, root: Path, *, decode: bool = False, progress: Progress = lambda done, total: None) -> Checked:
    """Check the built-in data set in or at `root`; with `decode`, open every image file."""
    built_in = BUILT_IN[name]
    assert built_in.checker is not None
    return Checked(tuple(resolve_name(built_in.checker)(name, root, decode, progress)), built_in.layout)
