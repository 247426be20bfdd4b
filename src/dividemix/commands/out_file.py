"""The flag --out of commands that write one file: checked before anything is computed."""

from pathlib import Path

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
