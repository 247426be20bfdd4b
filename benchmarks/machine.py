"""What a figure was measured on: hardware and versions."""

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

import torch


def machine() -> dict[str, Any]:
    """Hardware and versions."""
    return {
        "cpu": _cpu_model(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "cores": os.cpu_count() or 0,
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in ("dividemix", "torch", "numpy", "scikit-learn", "pillow")},
    }


def _cpu_model() -> str:
    """The processor's name."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def headline(described: dict[str, Any]) -> str:
    """The machine in one line."""
    packages = ("dividemix", "torch", "numpy", "scikit-learn", "pillow")
    return (
        f"{described['cpu']} ({described['cpu_capability']}), {described['cores']} cores,"
        f" {described['threads']} threads;"
        f" Python {described['python']}, " + ", ".join(f"{name} {described[name]}" for name in packages)
    )
