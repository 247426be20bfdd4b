"""The fault laboratory: disturbs, damages and fuzzes every command, and prints what was tried and what held.

    python tests/faults/laboratory.py                     all of it, about two hours of one core
    python tests/faults/laboratory.py kills refusals      some parts
    python tests/faults/laboratory.py kills --only train --step 7

Every draw is seeded, so a second call tries the same. A problem is printed as soon as it is seen; the exit code is 1 if
there was one.
"""

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), *(str(HERE.parent / name) for name in (".", "experiments"))]
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ["DIVIDEMIX_CACHE"] = "cache"  # in the folder of each attempt

import torch  # noqa: E402

torch.set_num_threads(1)  # before anything computes: a forked child has no other thread
if hasattr(os, "sched_getaffinity"):  # env.json has the number of cores: others may change it while this runs
    _CORES = os.sched_getaffinity(0)
    os.sched_getaffinity = lambda _: _CORES

from crowds import crowds  # noqa: E402
from damage import mutations  # noqa: E402
from disturb import Place, kills, refusals  # noqa: E402
from fuzzing import fuzzing  # noqa: E402
from sandbox import adopt_orphans, quietly  # noqa: E402
from scenarios import SCENARIOS  # noqa: E402
from tally import Tally, table  # noqa: E402


def _places(top: Path, only: str) -> Iterator[Place]:
    chosen = [scenario for scenario in SCENARIOS if only in scenario.name]
    for scenario in chosen:
        warm_up = top / "warm_up"
        scenario.prepare(warm_up)
        quietly(scenario.call, warm_up)  # what it loads on first use is there for all children
        shutil.rmtree(warm_up)
        yield Place(scenario, top)


def _kills(top: Path, only: str, step: int) -> Iterator[Tally]:
    for place in _places(top, only):
        yield kills(place, step)


def _refusals(top: Path, only: str, step: int) -> Iterator[Tally]:
    for place in _places(top, only):
        if place.scenario.name != "train" or only:  # it has the operations of "train short"
            yield from refusals(place, step)


def _flips(top: Path, only: str, step: int) -> Iterator[Tally]:
    """The flips of test_bit_flips.py: 600 for each kind of file."""
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", str(HERE / "test_bit_flips.py")]
    environment = os.environ | {"FAULTS": "all" if step == 1 else ""}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    for name, tried, noticed, harmless in re.findall(
        r"^\.?(.*): (\d+) flips, (\d+) noticed, (\d+) harmless", done.stdout, re.MULTILINE
    ):
        if only in name:
            ends = Counter({"noticed": int(noticed), "harmless": int(harmless)})
            yield Tally("flips", name, int(tried), +ends)
    if done.returncode:
        yield Tally("flips", "failures", 1, problems=[done.stdout[-3000:]])


PARTS: dict[str, Callable[[Path, str, int], Iterator[Tally]]] = {
    "kills": _kills,
    "refusals": _refusals,
    "damage": mutations,
    "flips": _flips,
    "fuzzing": fuzzing,
    "crowds": crowds,
}


def run(parts: list[str], *, only: str = "", step: int = 1, show: Callable[[str], object] = print) -> list[Tally]:
    """Run parts of the laboratory, on every step-th attempt, in a folder of their own."""
    memory = Path("/dev/shm")
    tallies = []
    warnings.simplefilter("ignore")
    adopt_orphans()
    for part in parts:
        top = Path(tempfile.mkdtemp(prefix="faults-", dir=memory if memory.is_dir() else None))
        try:
            for tally in PARTS[part](top, only, step):
                show(tally.line)
                for problem in tally.problems:
                    show(f"  PROBLEM {problem}")
                tallies.append(tally)
        finally:
            shutil.rmtree(top)
    return tallies


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description="The fault laboratory.")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help=f"{', '.join(PARTS)} [all]")
    parser.add_argument("--only", default="", metavar="TEXT", help="only what has this text in its name")
    parser.add_argument("--step", type=int, default=1, metavar="N", help="every N-th attempt [1]")
    arguments = parser.parse_args()
    started = time.monotonic()
    tallies = run(
        arguments.parts or list(PARTS),
        only=arguments.only,
        step=arguments.step,
        show=lambda line: print(line, flush=True),
    )
    print(table(tallies))
    cpu = time.process_time() + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    print(f"{(time.monotonic() - started) / 60:.1f} minutes, {cpu / 60:.1f} of the processor")
    return 1 if any(tally.problems for tally in tallies) else 0


if __name__ == "__main__":
    sys.exit(main())
