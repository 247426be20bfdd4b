"""Time and peak memory on many vectors: both should grow in proportion to the samples.

Usage, from the root of the repository: python -m benchmarks.many_vectors N ... [--features D] [--classes C]
[--ways NAME ...]

The vectors are drawn around class centres, 30 % of the labels are replaced by random ones. Each N and way runs in a
process of its own. Memory is the peak of this whole process, with Python and torch, as a multiple of the float32 data.

- command: `dividemix train` on an .npz file: training, judging, the list of label issues and the report.
- classifier: DivideMixClassifier.fit on the array in memory, which counts.
"""

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from benchmarks.machine import headline, machine

_AT_ONCE = 10_000  # vectors drawn at a time


def main() -> None:
    """Measure every N and way, and print a line for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("numbers", type=int, nargs="+", metavar="N")
    parser.add_argument("--features", type=int, default=256)
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--ways", nargs="+", choices=list(_WAYS), default=list(_WAYS))
    arguments = parser.parse_args()
    console = Console(highlight=False)
    console.print(headline(machine()), soft_wrap=True)
    for number in arguments.numbers:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "vectors.npz"
            is_wrong = _write(file, number, arguments.features, arguments.classes)
            for way in arguments.ways:
                measured = _measured(way, file, is_wrong, 4 * number * arguments.features)
                figures = "  ".join(f"{name} {value:.4g}" for name, value in measured.items())
                words = f"{number:,} x {arguments.features}, {arguments.classes} classes, {way}: {figures}"
                console.print(words, soft_wrap=True)


def _write(file: Path, num_samples: int, num_features: int, num_classes: int) -> NDArray[np.bool_]:
    """Write the vectors and their given labels; returns which labels are wrong."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(num_classes, num_features)).astype(np.float32)
    true = rng.integers(num_classes, size=num_samples)
    vectors = np.empty((num_samples, num_features), dtype=np.float32)
    for first in range(0, num_samples, _AT_ONCE):
        of = true[first : first + _AT_ONCE]
        noise = rng.standard_normal((len(of), num_features), dtype=np.float32)
        vectors[first : first + _AT_ONCE] = centres[of] + 3 * noise
    given = np.where(rng.random(num_samples) < 0.3, rng.integers(num_classes, size=num_samples), true)
    np.savez(file, features=vectors, labels=given)
    return np.asarray(given != true)


def _measured(way: str, file: Path, is_wrong: NDArray[np.bool_], data_bytes: int) -> dict[str, float]:
    """What a way takes, and how good its flags are."""
    words, flags_of = _WAYS[way]
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, *words(file)], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)  # of this process alone, unlike getrusage of all children
    seconds = time.perf_counter() - began
    if status:
        raise SystemExit(f"{way} failed")
    flagged = flags_of(file, len(is_wrong))
    return {
        "seconds": seconds,
        "cpu_seconds": used.ru_utime + used.ru_stime,
        "memory_per_data": used.ru_maxrss * 1024 / data_bytes,
        "wrong_of_flagged": float(is_wrong[flagged].mean()),
        "flagged_of_wrong": float(flagged[is_wrong].mean()),
    }


def _train_words(file: Path) -> list[str]:
    return ["-m", "dividemix", "train", str(file), "--out", str(file.with_name("run"))]


def _train_flags(file: Path, num_samples: int) -> NDArray[np.bool_]:
    flagged = np.zeros(num_samples, dtype=np.bool_)
    with file.with_name("run").joinpath("label_issues.csv").open(newline="") as table:
        for row in csv.DictReader(table):
            flagged[int(row["index"])] = row["is_label_issue"] == "True"
    return flagged


_FIT = """
import sys
import numpy as np
from dividemix import DivideMixClassifier
arrays = np.load(sys.argv[1])
np.save(sys.argv[2], DivideMixClassifier(random_state=0).fit(arrays["features"], arrays["labels"]).is_label_issue_)
"""


def _fit_words(file: Path) -> list[str]:
    return ["-c", _FIT, str(file), str(file.with_name("flagged.npy"))]


def _fit_flags(file: Path, num_samples: int) -> NDArray[np.bool_]:
    flagged: NDArray[np.bool_] = np.load(file.with_name("flagged.npy"))
    return flagged


_Way = tuple[Callable[[Path], list[str]], Callable[[Path, int], NDArray[np.bool_]]]  # its words, and its flags
_WAYS: dict[str, _Way] = {"command": (_train_words, _train_flags), "classifier": (_fit_words, _fit_flags)}


if __name__ == "__main__":
    main()
