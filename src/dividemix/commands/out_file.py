"""The flag --out of commands that write one file: checked before anything is computed."""

from collections.abc import Iterable
from pathlib import Path

from dividemix.data.same_file import identity
from dividemix.errors import InputError


def check_out(out: Path | None, *extensions: str) -> None:
    """Raise InputError unless `out` is None, or names a file with one of the extensions in an existing folder."""
    if out is None:
        return
    if out.is_dir() or not out.parent.is_dir():
        raise InputError(f"out is {out}: it must be a file in an existing folder")
    if out.suffix.lower() not in extensions:
        written = " or ".join(extensions)
        raise InputError(f"out is {out}: a {written} file is written: change the extension")


def refuse_to_replace(out: Path | None, inputs: Iterable[Path], *, overwrite: bool) -> None:
    """Raise InputError if `out` is an input, or exists and must not be overwritten."""
    if out is None:
        return
    if identity(out) in map(identity, inputs):
        raise InputError(f"out is {out}: that is a file to be read: name another file")
    if out.exists() and not overwrite:
        raise InputError(f"out is {out}: it exists: add overwrite to replace it, or choose another out")
