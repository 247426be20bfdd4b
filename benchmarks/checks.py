"""The share of a training that its checks take: digests, and shapes of stored values.

Usage, from the root of the repository: python -m benchmarks.checks [--epochs 4]

Both are CPU time of the process, so that other work on the machine does not count. Goal: below 2 %.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import dividemix
from dividemix.engine import checkpoint
from dividemix.planning import material
from dividemix.runs import checkpoints, directory, run

GOAL = 0.02
_CHECKS = (
    *("digest_of", "digest_of_file", "check_shape", "parse_json", "rows_digest", "choices_digest", "told_digest"),
    *("check_results", "results_digest"),
)
_LOADED = (checkpoint, material, checkpoints, directory, run)  # so that their names can be replaced


class Meter:
    """CPU seconds inside functions; a check that calls another one is counted once."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(_CHECKS, 0.0)
        self._inside = False

    def metered(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with its time counted."""

        @wraps(function)
        def timed(*arguments: Any, **options: Any) -> Any:
            if self._inside:
                return function(*arguments, **options)
            self._inside, started = True, time.thread_time()
            try:
                return function(*arguments, **options)
            finally:
                self._inside = False
                self.seconds[name] += time.thread_time() - started

        return timed


def main() -> int:
    """Train on the embedded images, and print the share; returns 1 if it is above the goal."""
    parser = argparse.ArgumentParser(description="What the checks cost.")
    parser.add_argument("--epochs", type=int, default=4)
    epochs = parser.parse_args().epochs
    meter = Meter()
    for module in [module for name, module in sys.modules.items() if name.startswith("dividemix.")]:
        for name in _CHECKS:
            if callable(found := vars(module).get(name)):
                setattr(module, name, meter.metered(name, found))
    with tempfile.TemporaryDirectory() as folder:
        started = time.process_time()
        out = Path(folder) / "run"
        dividemix.train("fashion", noise="symmetric:0.5", epochs=epochs, out=out, progress=False, compile="never")
        total = time.process_time() - started
    spent = sum(meter.seconds.values())
    for name, seconds in meter.seconds.items():
        print(f"{name:16} {seconds:8.4f} s")
    print(f"checks {spent:.3f} of {total:.1f} s of CPU time: {spent / total:.3%}; goal below {GOAL:.0%}")
    return 0 if spent / total < GOAL else 1


assert _LOADED
if __name__ == "__main__":
    sys.exit(main())
