"""The machine by name, for tables of times."""

import os
import platform
from pathlib import Path

MACHINE_FILE = "machine.txt"  # in a run directory: where it was trained


def num_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def machine_name(device: str, num_threads: int) -> str:
    """The accelerator, or the processor and how many of its cores computed, with the operating system."""
    if device != "cpu":
        return f"{device}, {platform.system()}"
    return f"{processor_name()}, {num_threads} of {num_cores()} cores, {platform.system()}"


def processor_name() -> str:
    """The processor's name, as the system tells it."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
