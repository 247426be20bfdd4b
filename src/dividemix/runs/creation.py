"""Create a run directory in one step, so that no process can destroy the run of another."""

import errno
import shutil
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, suppress
from itertools import chain, count
from pathlib import Path

from dividemix.errors import InputError
from dividemix.lock import exclusive
from dividemix.runs.reviewed import refuse_reviewed
from dividemix.settings import checked_path

_PARTIAL, _OLD = ".partial", ".old"


def create_directory(
    path: Path, fill: Callable[[Path], None], *, overwrite: bool = False, numbered: bool = False
) -> Path:
    """Make a directory that appears only after `fill` has written its first files; returns its path.

    It is filled under a temporary name and then renamed, which fails if a run of that name has appeared meanwhile. With
    `numbered`, a number is added to a name that is taken. Raises InputError if the path exists, unless it is a run that
    may be overwritten.
    """
    if not numbered:
        refuse_existing(path, overwrite=overwrite)
    path = path.resolve()
    with ExitStack() as stack:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _remove_strays(path)
            partial = _locked_partial(path, stack)
        except OSError as error:
            raise InputError(f"{path}: cannot be created: {error.strerror}") from error
        try:
            partial.chmod(0o755)
            fill(partial)
            return _renamed(partial, path, overwrite=overwrite, numbered=numbered)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise


def refuse_existing(path: Path, *, overwrite: bool) -> None:
    """Raise InputError if the path cannot exist, or exists, unless it is a run that may be overwritten.

    A run with decisions of a review may not.
    """
    checked_path(str(path), "out")
    if not path.name or path.name == "..":
        raise InputError(f"out is {path}: it must be a directory for this run alone, such as runs/first")
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    if not (path / "config.yaml").is_file():
        raise InputError(f"{path} exists and is not a run directory: move it away, or choose another out")
    if not overwrite:
        raise InputError(
            f"{path} has a run already: add resume to continue it or overwrite to replace it, or choose another out"
        )
    refuse_reviewed(path)


def _locked_partial(path: Path, stack: ExitStack) -> Path:
    """A new directory for the first files, locked so that no other process takes it for a stray."""
    while True:
        partial = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=_PARTIAL, dir=path.parent))
        with suppress(InputError, FileNotFoundError):  # taken for a stray before it was locked
            stack.enter_context(exclusive(partial))
            if partial.is_dir():
                return partial


def _renamed(partial: Path, path: Path, *, overwrite: bool, numbered: bool) -> Path:
    """Give the partial directory its name; or, if that is taken, the first free one with -2, -3, ... added."""
    others = (path.with_name(f"{path.name}-{number}") for number in count(2))
    for name in chain([path], others if numbered else ()):
        with ExitStack() as stack:
            old, is_taken = None, False
            with suppress(FileNotFoundError):  # another process is replacing it
                if overwrite and (name / "config.yaml").is_file():
                    found = name.stat().st_ino
                    stack.enter_context(exclusive(name))  # no process trains it
                    if name.stat().st_ino == found:  # and it is what was locked
                        refuse_reviewed(name)  # reading the data may have taken minutes
                        aside = Path(tempfile.mkdtemp(prefix=f".{name.name}.", suffix=_OLD, dir=name.parent))
                        old = name.rename(aside)  # replaces the empty directory
            try:
                partial.rename(name)  # never replaces a directory that has files
            except OSError as error:
                is_taken = error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR)
                if not is_taken:
                    if old is not None:
                        old.rename(name)
                    raise
            if old is not None:
                shutil.rmtree(old, ignore_errors=True)
        if not is_taken:
            return name
    raise InputError(f"{path}: another process has created it meanwhile: use another out")


def _remove_strays(path: Path) -> None:
    """Remove the directories of processes that died while they created or replaced this run."""
    for suffix in (_PARTIAL, _OLD):
        for stray in path.parent.glob(f".{path.name}.????????{suffix}"):
            # An error means that another process is creating it, or has removed it.
            with suppress(InputError, FileNotFoundError), exclusive(stray):
                shutil.rmtree(stray, ignore_errors=True)
