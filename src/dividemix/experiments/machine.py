"""The machine by name, for tables of times, and those that a run was trained on."""

import os
import platform
from pathlib import Path

from dividemix import atomic

_FILE = "machine.txt"  # in a run directory: a line for each machine that it was trained on


def num_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def num_threads_each(num_workers: int) -> int:
    """Threads for each of the workers: its share of the cores, or what OMP_NUM_THREADS says, if that is less."""
    share = max(1, num_cores() // num_workers)
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return min(share, int(limit)) if limit.isdecimal() and int(limit) else share


def machine_name(device: str, num_threads: int, *, num_workers: int) -> str:
    """The accelerator and how many runs shared it, or the processor and how many of its cores computed."""
    if device != "cpu":
        shared = f", {num_workers} runs at a time" if num_workers > 1 else ""
        return f"{device}{shared}, {platform.system()}"
    return f"{processor_name()}, {num_threads} of {num_cores()} cores, {platform.system()}"


def add_machine(run: Path, name: str) -> None:
    """Note that the run in the directory goes on here."""
    names = machines_of(run)
    if name not in names:
        atomic.write_text(run / _FILE, "".join(f"{line}\n" for line in [*names, name]))


def machines_of(run: Path) -> list[str]:
    """The machines that the run in the directory was trained on, in order."""
    file = run / _FILE
    return file.read_text(encoding="utf-8", errors="replace").splitlines() if file.is_file() else []


def processor_name() -> str:
    """The processor's name, as the system tells it."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
