"""Many small trainings, resumes and predictions in one process: memory, descriptors and threads must stay flat.

Usage, from the root of the repository: python -m benchmarks.soak --minutes 60

It prints a line a minute, and in the end how the second half of the time differs from the first. The exit code is 1 if
memory grew by more than 5 % and 20 MB, or descriptors or threads grew at all.
"""

import argparse
import gc
import shutil
import statistics
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

import dividemix
from dividemix.model.model import Model
from dividemix.report.of_run import write_report
from dividemix.runs.run import Run

_IMAGES: dict[str, Any] = {"net": "small_cnn", "net_width": 2, "crop_padding": 1}
_BATCHES: dict[str, Any] = {"batch_size": 8, "epochs": 3}
# Kinds of samples and settings, in turn.
ROUNDS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("images", {"method": "dividemix", "warmup_epochs": 1, **_IMAGES, **_BATCHES}),
    ("images", {"method": "robust", "warmup_epochs": 1, **_IMAGES, **_BATCHES}),
    ("images", {"method": "cross_entropy", **_IMAGES, **_BATCHES}),
    ("vectors", {"method": "robust_vectors", "epochs": 3}),
    ("texts", {"method": "cross_entropy", **_BATCHES}),
    ("rows", {"method": "cross_fitted", "epochs": 3, "learner": "extra_trees", "num_trees": 5, "target": "colour"}),
)
EXTENDED = ("dividemix", "robust", "cross_entropy")


@dataclass(frozen=True)
class Sample:
    """The state of the process after so many rounds."""

    seconds: float
    num_rounds: int
    megabytes: float
    num_descriptors: int
    num_threads: int

    def __str__(self) -> str:
        return (
            f"{self.seconds / 60:6.1f} min {self.num_rounds:6} rounds {self.megabytes:8.1f} MB"
            f" {self.num_descriptors:4} descriptors {self.num_threads:3} threads"
        )


def samples_of(kind: str, number: int) -> tuple[Any, Any]:
    """Forty samples of a kind, and their labels; rows have theirs in a column."""
    rng = np.random.default_rng(number)
    colours = [("red", "green", "blue", "grey")[i % 4] for i in range(40)]
    if kind == "images":
        return rng.integers(0, 256, (40, 8, 8), dtype=np.uint8), colours
    if kind == "vectors":
        return rng.normal(size=(40, 6)).astype(np.float32), colours
    if kind == "texts":
        return [f"the {colour} thing number {rng.integers(9)}" for colour in colours], colours
    return [{"size": rng.normal(), "shape": "round", "colour": colour} for colour in colours], None


def one_round(number: int, folder: Path) -> None:
    """Train a run, extend it, stop it after an epoch, resume it to its end, and predict with its model.

    Methods whose phases are shares of the epochs cannot be extended: their runs are loaded again and judged.
    """
    kind, settings = ROUNDS[number % len(ROUNDS)]
    samples, labels = samples_of(kind, number)
    out = folder / "run"
    dividemix.train(samples, labels, out=out, seed=number, device="cpu", progress=False, **settings)
    shutil.rmtree(out / "model")
    run = Run.load(out)
    if settings["method"] in EXTENDED:
        run.extend(1)
        with closing(run.epochs()) as epochs:
            list(islice(epochs, 1))
        run = Run.load(out)
    run.train()
    write_report(run)
    Model.from_pretrained(out, "cpu").predict_proba(samples)
    shutil.rmtree(out)


def sample(started: float, num_rounds: int) -> Sample:
    """The state of the process now, after unused objects are collected."""
    gc.collect()
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    resident = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024
    descriptors = len(list(Path("/proc/self/fd").iterdir())) - 1  # the folder itself
    threads = len(list(Path("/proc/self/task").iterdir()))  # also those that are not Python's
    return Sample(time.monotonic() - started, num_rounds, resident, descriptors, threads)


def main() -> int:
    """Run for so many minutes; returns the exit code."""
    parser = argparse.ArgumentParser(description="Small trainings in one process, for a while.")
    parser.add_argument("--minutes", type=float, default=60, help="how long [60]")
    parser.add_argument("--pause", type=float, default=0, help="seconds of sleep after each round [0]")
    arguments = parser.parse_args()
    minutes = arguments.minutes
    torch.set_num_threads(1)
    samples, num_rounds, started = list[Sample](), 0, time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() - started < 60 * minutes:
            one_round(num_rounds, Path(folder))
            num_rounds += 1
            time.sleep(arguments.pause)
            if not samples or time.monotonic() - started - samples[-1].seconds > 60 * min(1, minutes / 20):
                samples.append(sample(started, num_rounds))
                print(samples[-1], flush=True)
    later = samples[len(samples) // 2 :]
    early = samples[len(samples) // 10 + 1 : len(samples) // 2] or later
    before, after = (statistics.median(one.megabytes for one in half) for half in (early, later))
    grown = max(one.num_descriptors for one in later) - max(one.num_descriptors for one in early)
    threads = max(one.num_threads for one in later) - max(one.num_threads for one in early)
    print(f"{num_rounds} rounds in {minutes:g} minutes; second half against first, without its beginning:")
    print(f"memory {before:.1f} -> {after:.1f} MB, descriptors {grown:+}, threads {threads:+}")
    return 1 if (after > 1.05 * before and after > before + 20) or grown > 0 or threads > 0 else 0


if __name__ == "__main__":
    sys.exit(main())
