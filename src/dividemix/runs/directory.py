"""The files of a run directory, each written whole or not at all.

config.yaml  env.json  noise.json  metrics.jsonl  summary.json  checkpoints/last/  checkpoints/best/
"""

import json
import platform
import shutil
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dividemix import atomic
from dividemix.errors import InputError
from dividemix.runs.job import Job, read_settings


class RunDirectory:
    """A run directory that exists."""

    def __init__(self, path: Path):
        self.path = path
        self.last = path / "checkpoints" / "last"
        self.best = path / "checkpoints" / "best"
        self._metrics = path / "metrics.jsonl"

    @classmethod
    def create(cls, path: Path, fill: Callable[["RunDirectory"], None], *, overwrite: bool) -> "RunDirectory":
        """A new run directory, which appears under its name only once `fill` has put its first files there.

        Raises:
            InputError: if something is there already, unless it is a run and may be overwritten.
        """
        refuse_existing(path, overwrite=overwrite)
        path = path.resolve()
        partial, old = (path.with_name(f".{path.name}.{word}") for word in ("partial", "old"))
        for stray in (partial, old):  # left by a process that died
            shutil.rmtree(stray, ignore_errors=True)
        partial.mkdir(parents=True)
        try:
            fill(cls(partial))
            if path.exists():
                path.rename(old)  # a run that is being removed must not pass for one
            partial.rename(path)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            if old.exists() and not path.exists():
                old.rename(path)
            raise
        shutil.rmtree(old, ignore_errors=True)
        return cls(path)

    def write_job(self, job: Job) -> None:
        """config.yaml."""
        atomic.write_text(self.path / "config.yaml", job.to_yaml())

    def read_job(self) -> Job:
        """The job in config.yaml.

        Raises:
            InputError: if there is none, or it is damaged.
        """
        if not (self.path / "config.yaml").is_file():
            raise InputError(f"{self.path}: there is no run here")
        return Job.of(read_settings(self.path / "config.yaml"))

    def write_json(self, name: str, content: Any) -> None:
        """A JSON file."""
        atomic.write_text(self.path / name, json.dumps(content, indent=2, ensure_ascii=False) + "\n")

    def read_rows(self) -> list[dict[str, Any]]:
        """The epochs in metrics.jsonl; a last line that was cut short does not count."""
        if not self._metrics.exists():
            return []
        lines = self._metrics.read_text(encoding="utf-8").split("\n")
        try:
            rows = [json.loads(line) for line in lines[:-1]]
        except ValueError as error:
            raise InputError(f"{self._metrics} is damaged ({error}); start again with --overwrite") from error
        if not all(isinstance(row, dict) for row in rows):
            raise InputError(f"{self._metrics} is damaged (a line is no object); start again with --overwrite")
        return rows

    def write_rows(self, rows: list[dict[str, Any]]) -> None:
        """metrics.jsonl with these epochs and no others."""
        atomic.write_text(self._metrics, "".join(_line(row) for row in rows))

    def append_row(self, row: dict[str, Any]) -> None:
        """Add an epoch to metrics.jsonl, whole or not at all."""
        self.write_rows([*self.read_rows(), row])


def refuse_existing(path: Path, *, overwrite: bool) -> None:
    """Raise InputError where a new run cannot go: something is there, and is not a run that may be overwritten."""
    if not path.name or path.name == "..":
        raise InputError(f"--out {path}: a directory of its own is needed, such as runs/first")
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    if not (path / "config.yaml").is_file():
        raise InputError(f"{path} exists and is not a run directory: choose another --out")
    if not overwrite:
        raise InputError(f"{path} holds a run already: use --resume, --overwrite, or another --out")


def environment(device: torch.device) -> dict[str, Any]:
    """What the run was made with: versions, machine, command."""
    return {
        "dividemix": metadata.version("dividemix"),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "platform": platform.platform(),
        "num_threads": torch.get_num_threads(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else str(device),
        "command": sys.argv,
    }


def _line(row: dict[str, Any]) -> str:
    return json.dumps(row, allow_nan=False) + "\n"
