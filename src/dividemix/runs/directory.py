"""The files of a run directory, each written whole or not at all.

config.yaml  choices.json  env.json  noise.json  skipped.csv  data.npz  metrics.jsonl  checkpoints/{last,best}/
and at the end: model/  label_issues.csv  pred_probs.npy  report.html  summary.json
"""

import csv
import io
import json
import os
import platform
import shutil
import sys
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dividemix import atomic
from dividemix.data.source import Skipped, Source
from dividemix.engine.lock import exclusive
from dividemix.errors import START_AGAIN, InputError
from dividemix.planning.job import Job, read_settings


class RunDirectory:
    """A run directory that exists."""

    def __init__(self, path: Path):
        self.path = path
        self.last = path / "checkpoints" / "last"
        self.best = path / "checkpoints" / "best"
        self.noise = path / "noise.json"
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
        try:
            partial.mkdir(parents=True)
        except OSError as error:
            raise InputError(f"{path}: cannot be made: {error.strerror}") from error
        try:
            fill(cls(partial))
            if path.exists():
                with exclusive(path):  # nobody trains it
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

    def read_summary(self) -> dict[str, Any]:
        """summary.json of a finished run."""
        summary: dict[str, Any] = json.loads((self.path / "summary.json").read_text(encoding="utf-8"))
        return summary

    def read_choices(self) -> list[dict[str, Any]]:
        """The choices in choices.json; none where there is no such file."""
        path = self.path / "choices.json"
        try:
            choices: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
        except ValueError as error:
            raise InputError(f"{path} is damaged ({error}); {START_AGAIN}") from error
        return choices

    def write_skipped(self, skipped: Sequence[Skipped]) -> None:
        """skipped.csv: what was left out of the data, and why."""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([("path", "reason"), *((s.path, s.reason) for s in skipped)])
        atomic.write_text(self.path / "skipped.csv", text.getvalue())

    @property
    def data(self) -> Path:
        """Where a run keeps data that came from Python."""
        return self.path / "data.npz"

    def write_data(self, source: Source) -> None:
        """data.npz, of a source that is in memory."""
        arrays = {
            "x_train": source.train_images,
            "y_train": source.train_labels,
            "x_test": source.test_images,
            "y_test": source.test_labels,
            "y_true": source.true_labels,
            "classes": np.array(source.classes),
            "rows": source.rows,
            "paths": None if source.paths is None else np.array(source.paths),
        }
        with atomic.replacing(self.data) as file:
            np.savez(file, **{name: array for name, array in arrays.items() if array is not None})  # type: ignore[arg-type]

    def read_skipped(self) -> tuple[Skipped, ...]:
        """What skipped.csv lists; nothing where there is no such file."""
        path = self.path / "skipped.csv"
        if not path.is_file():
            return ()
        try:
            with path.open(encoding="utf-8", newline="") as file:
                return tuple(Skipped(row["path"], row["reason"]) for row in csv.DictReader(file))
        except (ValueError, KeyError, csv.Error) as error:
            raise InputError(f"{path} is damaged ({error!r}); {START_AGAIN}") from error

    def read_rows(self) -> list[dict[str, Any]]:
        """The epochs in metrics.jsonl; a last line that was cut short does not count."""
        if not self._metrics.exists():
            return []
        try:
            lines = self._metrics.read_text(encoding="utf-8").split("\n")
            rows = [json.loads(line) for line in lines[:-1]]
        except ValueError as error:
            raise InputError(f"{self._metrics} is damaged ({error}); {START_AGAIN}") from error
        if not all(isinstance(row, dict) for row in rows):
            raise InputError(f"{self._metrics} is damaged (a line is no object); {START_AGAIN}")
        return rows

    def write_rows(self, rows: list[dict[str, Any]]) -> None:
        """metrics.jsonl with these epochs and no others."""
        atomic.write_text(self._metrics, "".join(_line(row) for row in rows))

    def append_row(self, row: dict[str, Any]) -> None:
        """Add an epoch to metrics.jsonl, whole or not at all."""
        self.write_rows([*self.read_rows(), row])


def free_directory(name: str) -> Path:
    """A run directory under runs/ that is not there yet: of this name, or with a number behind it."""
    path, number = Path("runs") / name, 1
    while path.exists():
        number += 1
        path = Path("runs") / f"{name}-{number}"
    return path


def refuse_existing(path: Path, *, overwrite: bool) -> None:
    """Raise InputError where a new run cannot go: something is there, and is not a run that may be overwritten."""
    if not path.name or path.name == "..":
        raise InputError(f"--out {path}: a directory of its own is needed, such as runs/first")
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    if not (path / "config.yaml").is_file():
        raise InputError(f"{path} exists and is not a run directory: move it away, or choose another --out")
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
        "command": [os.fsencode(word).decode("utf-8", "backslashreplace") for word in sys.argv],
    }


def _line(row: dict[str, Any]) -> str:
    return json.dumps(row, allow_nan=False) + "\n"
