"""The files of a run directory, each written whole or not at all.

config.yaml  choices.json  env.json  noise.json  skipped.csv  notes.json  data.npz  metrics.jsonl
checkpoints/{last,best}/
and at the end: model/  label_issues.csv  label_issues.parquet  pred_probs.npy  report.html  summary.json
"""

import csv
import io
import json
import os
import platform
import re
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray

from dividemix import atomic
from dividemix.data.packed_samples import packed
from dividemix.data.source import Skipped, Source
from dividemix.data.spreadsheet import as_field, from_field
from dividemix.data.text_table import read_text_table
from dividemix.engine import processes
from dividemix.engine.processor import num_cores, processor_name
from dividemix.errors import START_AGAIN, InputError, OtherProcessorWarning, advised
from dividemix.foreign import refuse_foreign
from dividemix.judging.issue_parquet import has_pyarrow
from dividemix.judging.label_issues import LabelIssues
from dividemix.judging.odd_samples import duplicates_csv
from dividemix.judging.records import ChoiceRecord, EpochRow, RunSummary
from dividemix.judging.results_digest import check_results
from dividemix.planning.job import Job, read_settings
from dividemix.runs.unfinished import require_run
from dividemix.stored import MAX_BYTES, MAX_JSON_BYTES, parse_json, read_bytes, read_json
from dividemix.version import __version__

MANY_LINES = 100_000  # a longer label_issues.csv is also written as .parquet
_ROWS = 4096  # of an array that are written at a time


class RunDirectory:
    """A run directory that exists."""

    def __init__(self, path: Path):
        self.path = path
        self.last = path / "checkpoints" / "last"
        self.best = path / "checkpoints" / "best"
        self.noise = path / "noise.json"
        self.data = path / "data.npz"  # of a run on data from Python
        self._metrics = path / "metrics.jsonl"

    def write_job(self, job: Job) -> None:
        """Write config.yaml."""
        atomic.write_text(self.path / "config.yaml", job.to_yaml())

    def read_job(self, *, trust_net: bool = False) -> Job:
        """The job in config.yaml. Raises InputError if there is none, it is damaged, or it names code to be trusted."""
        path = self.path / "config.yaml"
        require_run(self.path)
        values = read_settings(path, of_run=True)
        for kind in ("net", "method", "encoder"):
            refuse_foreign(kind, values.get(kind), path, trusted=trust_net)
        return Job.of(values)

    def read_net(self) -> Any:
        """The name of the net in config.yaml. Raises InputError if there is no run, or it is damaged."""
        return read_settings(self.path / "config.yaml", of_run=True).get("net")

    def write_json(self, name: str, content: Any) -> None:
        """Write a JSON file."""
        atomic.write_text(self.path / name, json.dumps(content, indent=2, ensure_ascii=False) + "\n")

    def add_environment(self, environment: dict[str, Any]) -> None:
        """Add an environment to env.json, under `resumed`, unless one that differs only in its command is recorded."""
        known = self.read_environments()
        machine = {name: value for name, value in environment.items() if name != "command"}
        if not any(machine.items() <= one.items() for one in known):
            first, *resumed = [*known, environment]
            self.write_json("env.json", first | ({"resumed": resumed} if resumed else {}))

    def add_estimate(self, seconds: float) -> None:
        """Add to env.json how long the run was expected to take when it began."""
        if known := self.read_environments():
            first, *resumed = known
            first["estimated_seconds"] = round(seconds, 1)
            self.write_json("env.json", first | ({"resumed": resumed} if resumed else {}))

    def warn_of_another_processor(self, environment: dict[str, Any]) -> None:
        """Warn if an environment in env.json has another device, processor or instruction set than this one."""
        for name in ("device", "processor", "instruction_set"):
            here, known = environment[name], [one[name] for one in self.read_environments() if name in one]
            if others := [there for there in known if there != here]:
                words = f"the {name.replace('_', ' ')} is {here}, earlier epochs had {str(others[0])[:100]}"
                warnings.warn(f"{self.path}: {words}: bits may differ", OtherProcessorWarning, stacklevel=2)
                return

    def read_environments(self) -> list[dict[str, Any]]:
        """The environments in env.json: that in which the run began, then those in which it was resumed."""
        path = self.path / "env.json"
        if not path.is_file():
            return []
        content = read_bytes(path, MAX_JSON_BYTES)  # what cannot be read must not be replaced
        try:
            first = parse_json(content, dict[str, Any], str(path))
            return [first, *map(dict, first.pop("resumed", []))]
        except (ValueError, TypeError):  # damaged: no result depends on it
            return []

    def read_summary(self) -> RunSummary:
        """summary.json of a finished run. Raises InputError if it is damaged."""
        check_results(self.path)
        return read_json(self.path / "summary.json", RunSummary)

    def read_choices(self) -> list[ChoiceRecord]:
        """The choices in choices.json; none without that file."""
        path = self.path / "choices.json"
        if not path.exists():
            return []
        try:
            return read_json(path, list[ChoiceRecord])
        except InputError as error:
            raise advised(error, START_AGAIN) from error.__cause__

    def read_notes(self) -> tuple[str, ...]:
        """The lines in notes.json; none without that file."""
        path = self.path / "notes.json"
        if not path.exists():
            return ()
        try:
            return tuple(read_json(path, list[str]))
        except InputError as error:
            raise advised(error, START_AGAIN) from error.__cause__

    def write_skipped(self, skipped: Sequence[Skipped]) -> None:
        """Write skipped.csv: the files that were skipped, and why."""
        atomic.write_text(self.path / "skipped.csv", skipped_csv(skipped))

    def write_data(self, source: Source) -> None:
        """Write data.npz, from a source in memory; of vectors that an encoder computed, the samples."""
        source = source if source.encoding is None else source.encoding.source
        arrays = {
            "x_train": packed(source.train_samples),
            "y_train": source.train_labels,
            "x_test": packed(source.test_samples),
            "y_test": source.test_labels,
            "y_true": source.true_labels,
            "classes": np.array(source.classes),
            "label_type": None if source.label_type == "text" else np.array(source.label_type),
            "text_column": None if source.text_column is None else np.array(source.text_column),
            "feature_names": None if source.feature_names is None else np.array(source.feature_names),
            "rows": source.rows,
            "paths": None if source.paths is None else np.array(source.paths),
            **({} if source.votes is None else source.votes.arrays()),
        }
        with atomic.replacing(self.data) as file:
            np.savez(file, **{name: array for name, array in arrays.items() if array is not None})

    def read_skipped(self) -> tuple[Skipped, ...]:
        """The files that skipped.csv lists; none without that file."""
        path = self.path / "skipped.csv"
        if not path.is_file():
            return ()
        try:
            table = read_text_table(path, {"path", "reason"})
            columns = [table.columns.index(name) for name in ("path", "reason")]
            return tuple(Skipped(*(from_field(record.fields[i]) for i in columns)) for record in table.rows())
        except (ValueError, IndexError) as error:
            if isinstance(error.__cause__, OSError):
                raise
            raise InputError(f"{path} is damaged ({error}); {START_AGAIN}") from error

    def read_rows(self) -> list[EpochRow]:
        """The epochs in metrics.jsonl; an incomplete last line is ignored."""
        if not self._metrics.exists():
            return []
        lines = read_bytes(self._metrics, MAX_BYTES).split(b"\n")[:-1]
        try:
            rows = [parse_json(line, EpochRow, f"{self._metrics}: line {i}") for i, line in enumerate(lines, start=1)]
        except InputError as error:
            raise InputError(f"{error}; {START_AGAIN}") from error
        if [row["epoch"] for row in rows] != list(range(1, len(rows) + 1)):
            raise InputError(f"{self._metrics}: damaged (its epochs are not 1, 2, 3, ...); {START_AGAIN}")
        return rows

    def write_rows(self, rows: list[EpochRow]) -> None:
        """Write metrics.jsonl with these epochs and no others."""
        atomic.write_text(self._metrics, "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows))

    def write_issues(self, issues: LabelIssues) -> None:
        """Write label_issues.csv, near_duplicates.csv if there are any, and pred_probs.npy.

        Row i of the last belongs to line i of the first, worst first. Many lines are also written as .parquet.
        """
        with atomic.replacing(self.path / "label_issues.csv") as file:
            for block in issues.csv_blocks():
                file.write(block.encode())
        if len(issues.labels) >= MANY_LINES and has_pyarrow():
            issues.to_parquet(self.path / "label_issues.parquet")
        if (duplicates := duplicates_csv(issues)) is not None:
            atomic.write_text(self.path / "near_duplicates.csv", duplicates)
        with atomic.replacing(self.path / "pred_probs.npy") as file:
            write_rows(file, issues.pred_probs, issues.order)


def skipped_csv(skipped: Sequence[Skipped]) -> str:
    """The text of skipped.csv."""
    text = io.StringIO()
    fields = [[word.replace("\0", "\\0") for word in (one.path, one.reason)] for one in skipped]  # csv has no NUL
    csv.writer(text, lineterminator="\n").writerows([("path", "reason"), *(map(as_field, row) for row in fields)])
    return text.getvalue()


def write_rows(file: BinaryIO, array: NDArray[np.float32], order: NDArray[np.int64]) -> None:
    """Write the rows of an array in an order as an .npy file; no second copy of the array is made."""
    shape = (len(order), *array.shape[1:])
    np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
    for start in range(0, len(order), _ROWS):
        file.write(np.ascontiguousarray(array[order[start : start + _ROWS]], dtype="<f4").tobytes())


def environment(device: torch.device) -> dict[str, Any]:
    """The environment of a training: versions, machine, command."""
    return {
        "dividemix": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "packages": _versions(),
        "platform": platform.platform(),
        "processor": processor_name(),
        "instruction_set": torch.backends.cpu.get_cpu_capability(),
        "num_cores": num_cores(),
        "num_threads": torch.get_num_threads(),
        "blas": _blas(),
        "num_processes": processes.num_joined(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else str(device),
        "command": [os.fsencode(word).decode("utf-8", "backslashreplace") for word in sys.argv],
    }


def _blas() -> dict[str, str]:
    """The libraries that multiply matrices for torch and for numpy."""
    of_torch = re.search(r"BLAS_INFO=(\w+)", torch.__config__.show())
    of_numpy = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return {"torch": of_torch[1] if of_torch else "unknown", "numpy": f"{of_numpy['name']} {of_numpy['version']}"}


def _versions() -> dict[str, str]:
    """The versions of the other packages that compute, read or write."""
    found = {}
    for name in ("safetensors", "pillow", "pyyaml", "pyarrow", "scikit-learn"):
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found
