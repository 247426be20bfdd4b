"""The processor of this machine: its name, what it can do, and how many cores this process may use. No torch import."""

import os
import platform
from pathlib import Path

_BFLOAT16 = {"avx512_bf16", "amx_bf16"}  # names of the instructions among the processor's flags


def num_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processor_name() -> str:
    """The processor's name, as the system reports it."""
    return _reported("model name") or platform.processor() or platform.machine()


def computes_in_bfloat16() -> bool:
    """Whether the processor multiplies bfloat16 numbers itself, about twice as fast as float32 ones."""
    return not _BFLOAT16.isdisjoint(_reported("flags").split())


def _reported(name: str) -> str:
    """What Linux reports of the first processor under that name; empty if it reports nothing."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == name:
                return value.strip()
    return ""
