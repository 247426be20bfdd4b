"""A data set, settings and runs so small that an epoch takes hundredths of a second, and what a run leaves on disk."""

import itertools
import json
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import numpy as np

from dividemix.judging.records import EpochRow
from dividemix.methods import find_method
from dividemix.planning.job import Job, known_to
from dividemix.report.of_run import write_report
from dividemix.runs.run import Run

NUM_TRAIN, NUM_TEST, NUM_CLASSES = 40, 12, 4

SETTINGS: dict[str, Any] = {
    "net": "small_cnn",
    "net_width": 2,
    "batch_size": 8,
    "epochs": 4,
    "warmup_epochs": 2,
    "crop_padding": 1,
    "device": "cpu",
}
FLAGS = [word for name, value in SETTINGS.items() for word in (f"--{name}", str(value))]


def toy_arrays(**changes: Any) -> dict[str, Any]:
    """8 x 8 images of four classes, told apart by a bright quarter; with changes, None leaving an array out."""
    rng = np.random.default_rng(0)

    def draw(labels: Any) -> Any:
        images = rng.integers(0, 120, (len(labels), 8, 8), dtype=np.uint8)
        for image, label in zip(images, labels, strict=True):
            row, column = 4 * (label // 2), 4 * (label % 2)
            image[row : row + 4, column : column + 4] += 100
        return images

    y_train, y_test = np.arange(NUM_TRAIN) % NUM_CLASSES, np.arange(NUM_TEST) % NUM_CLASSES
    full = {"x_train": draw(y_train), "y_train": y_train, "x_test": draw(y_test), "y_test": y_test}
    return {name: array for name, array in (full | changes).items() if array is not None}


def save_toy(folder: Path, **changes: Any) -> Path:
    """toy.npz in the folder."""
    path = folder / "toy.npz"
    np.savez(path, **toy_arrays(**changes))
    return path


def toy_job(folder: Path, **changes: Any) -> Job:
    """A job on the folder's toy.npz, which is made if it is absent, with other settings where they are named.

    A method that needs trusted labels gets those of the test samples.
    """
    data = folder / "toy.npz" if (folder / "toy.npz").exists() else save_toy(folder)
    method = changes.get("method", "dividemix")
    settings = known_to(method, SETTINGS) | ({"trusted": str(data)} if find_method(method).needs_trusted else {})
    return Job.of({"data": str(data), "noise": "symmetric:0.4"} | settings | changes)


def trained(path: Path, job: Job, num_epochs: int | None = None) -> Run:
    """A new run after so many epochs; without a number, after all of them, with its page."""
    run = Run.create(path, job)
    with closing(run.epochs()) as epochs:
        for _ in itertools.islice(epochs, num_epochs):
            pass
    if num_epochs is None:
        write_report(run)
    return run


def finish(run: Run) -> Run:
    """The run after its last epoch, with its page: what the faces do to a run."""
    run.train()
    write_report(run)
    return run


def epoch_row(epoch: int, **values: Any) -> EpochRow:
    """A line of metrics.jsonl of an epoch in which nothing was measured but the values."""
    row: EpochRow = {
        "epoch": epoch,
        "phase": "mix",
        "selects": True,
        "seconds": 0.0,
        "profile": {},
        "losses": {},
        "figures": {},
        "test_acc": None,
    }
    row.update(cast(EpochRow, values))
    return row


def settled(run: Path) -> dict[str, Any]:
    """What equal trainings must leave equal: every file of a run as bytes, but the times and the environment."""
    files: dict[str, Any] = {}
    for path in sorted(run.rglob("*")):
        name = str(path.relative_to(run))
        if path.is_dir() or name == "env.json":
            continue
        files[name] = path.read_bytes()
        if name == "metrics.jsonl":
            files[name] = [without_times(line) for line in files[name].splitlines()]
        elif name == "metrics.csv":
            files[name] = [line.split(b",")[:2] + line.split(b",")[3:] for line in files[name].splitlines()]
        elif name == "summary.json":
            files[name] = without_times(files[name])
    return files


def without_times(text: bytes) -> str:
    """A JSON object as text, without what a clock measured."""
    content = json.loads(text)
    return json.dumps(
        {name: value for name, value in content.items() if name not in ("seconds", "cpu_seconds", "profile")}
    )


def tree(folder: Path) -> dict[str, bytes | None]:
    """Every path below a folder with its content, None for a folder."""
    return {str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes() for path in folder.rglob("*")}
