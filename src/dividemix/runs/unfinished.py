"""Which folders are runs, and which runs wait to be resumed. No torch import."""

from contextlib import suppress
from pathlib import Path

from dividemix.errors import InputError
from dividemix.lock import exclusive
from dividemix.meant import or_meant_path


def is_run(path: Path) -> bool:
    """Whether the path is a run directory."""
    return (path / "config.yaml").is_file() and (path / "checkpoints").is_dir()


def require_run(path: Path) -> None:
    """Raise InputError unless there is a run directory, whole or damaged."""
    if not (path / "config.yaml").is_file():
        wanted = "give the directory that dividemix train wrote, such as runs/photos-robust_history-seed1"
        raise InputError(f"{path}: not a run directory: {or_meant_path(path, wanted)}")


def named_run(text: str) -> Path:
    """The path that the text names or, if nothing is there, the run of this name in the folder runs."""
    path, named = Path(text), Path("runs") / text
    with suppress(OSError):  # too long for a path: the command says so
        return named if not path.exists() and is_run(named) else path
    return path


def unfinished_runs(folder: Path) -> list[Path]:
    """The runs in the folder, or one level deeper, that no process trains and that have no results; newest first."""
    found = [path.parent for pattern in ("*", "*/*") for path in folder.glob(f"{pattern}/config.yaml")]
    waiting = [path for path in found if is_run(path) and not (path / "summary.json").exists() and not _is_busy(path)]
    return sorted(waiting, key=_saved_at, reverse=True)


def _saved_at(path: Path) -> float:
    """When the last epoch was saved."""
    index = path / "checkpoints" / "last" / "checkpoint.json"
    return (index if index.exists() else path).stat().st_mtime


def _is_busy(path: Path) -> bool:
    try:
        with exclusive(path):
            return False
    except InputError:
        return True
