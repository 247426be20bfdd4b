"""How fast two trainings are side by side on the same cores, compared with one alone.

Usage, from the root of the repository, on a quiet machine: python -m benchmarks.side_by_side [--rounds 3]

Each round trains once alone and then twice at a time, so that a machine that drifts does so under both. The speed is
that of the epochs after the first, as metrics.jsonl has them. With fair sharing each is half as fast as alone.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

GOAL = 0.4
_COMMAND = (
    *("train", "fashion", "--method", "cross_entropy", "--limit_train", "3000", "--epochs", "4", "--noise"),
    *("symmetric:0.5", "--device", "cpu", "--compile", "never", "--kernels", "torch"),
)


def together(number: int, folder: Path) -> list[float]:
    """Train so many runs at a time; the seconds of an epoch of each."""
    runs = [folder / str(i) for i in range(number)]
    environment = {name: value for name, value in os.environ.items() if name not in ("OMP_NUM_THREADS",)}
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "dividemix", *_COMMAND, "--out", str(run)],
            env=environment,
            stdout=subprocess.DEVNULL,
        )
        for run in runs
    ]
    if any(process.wait() for process in started):
        raise SystemExit("a training failed")
    return [_epoch_seconds(run) for run in runs]


def _epoch_seconds(run: Path) -> float:
    """The mean seconds of an epoch after the first."""
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return statistics.fmean(row["seconds"] for row in rows[1:])


def main() -> int:
    """Print a line for each round and the median; returns 1 if that is below the goal."""
    parser = argparse.ArgumentParser(description="Two trainings side by side.")
    parser.add_argument("--rounds", type=int, default=3)
    ratios = []
    for number in range(parser.parse_args().rounds):
        with tempfile.TemporaryDirectory() as folder:
            (alone,) = together(1, Path(folder) / "alone")
            both = together(2, Path(folder) / "both")
        ratios += [alone / seconds for seconds in both]
        load = os.getloadavg()[0]
        shown = ", ".join(f"{seconds:.2f} s ({alone / seconds:.0%})" for seconds in both)
        print(f"round {number + 1}: an epoch alone {alone:.2f} s; side by side {shown}; load {load:.1f}", flush=True)
    print(f"each is {statistics.median(ratios):.0%} as fast as alone, at least {min(ratios):.0%}; goal {GOAL:.0%}")
    return 0 if statistics.median(ratios) >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
