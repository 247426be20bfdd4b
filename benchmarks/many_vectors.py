"""Time and peak memory of DivideMixClassifier on many vectors: both should grow in proportion to the samples.

Usage, from the root of the repository: python -m benchmarks.many_vectors N ... [--features D] [--classes C]

Each N runs in a process of its own. The vectors are drawn around class centres, 30 % of the labels are wrong. Memory is
the peak above that of the process before it had the data, as a multiple of the float32 data.
"""

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np
from rich.console import Console


def main() -> None:
    """Measure every N and print a line for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("numbers", type=int, nargs="+", metavar="N")
    parser.add_argument("--features", type=int, default=256)
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    console = Console(highlight=False)
    for number in arguments.numbers:
        if arguments.child:
            console.print(json.dumps(_measure(number, arguments.features, arguments.classes)), soft_wrap=True)
            continue
        sizes = ["--features", str(arguments.features), "--classes", str(arguments.classes)]
        command = [sys.executable, "-m", "benchmarks.many_vectors", str(number), *sizes, "--child"]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        figures = "  ".join(f"{name} {value:.4g}" for name, value in json.loads(done.stdout).items())
        console.print(f"{number:,} x {arguments.features}, {arguments.classes} classes: {figures}", soft_wrap=True)


def _measure(num_samples: int, num_features: int, num_classes: int) -> dict[str, float]:
    from dividemix import DivideMixClassifier

    rng = np.random.default_rng(0)
    DivideMixClassifier(epochs=2).fit(rng.normal(size=(200, num_features)), np.arange(200) % 2)  # loads what it needs
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    centres = rng.normal(size=(num_classes, num_features)).astype(np.float32)
    true = rng.integers(num_classes, size=num_samples)
    vectors = np.empty((num_samples, num_features), dtype=np.float32)
    for first in range(0, num_samples, 10_000):
        rows = slice(first, first + 10_000)
        vectors[rows] = centres[true[rows]] + 3 * rng.standard_normal((len(true[rows]), num_features), dtype=np.float32)
    given = np.where(rng.random(num_samples) < 0.3, rng.integers(num_classes, size=num_samples), true)
    began, cpu = time.perf_counter(), time.process_time()
    classifier = DivideMixClassifier(random_state=0).fit(vectors, given)
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    flagged = classifier.is_label_issue_
    return {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "memory_per_data": peak / vectors.nbytes,
        "wrong_of_flagged": float((given != true)[flagged].mean()),
        "flagged_of_wrong": float(flagged[given != true].mean()),
    }


if __name__ == "__main__":
    main()
