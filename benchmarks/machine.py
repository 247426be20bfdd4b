"""What a figure was measured on: hardware and versions."""

import os
import platform
from importlib import metadata
from typing import Any

import torch

from dividemix.engine.processor import processor_name


def machine() -> dict[str, Any]:
    """Hardware and versions."""
    return {
        "cpu": processor_name(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "cores": os.cpu_count() or 0,
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in ("dividemix", "torch", "numpy", "scikit-learn", "pillow")},
    }


def headline(described: dict[str, Any]) -> str:
    """The machine in one line."""
    packages = ("dividemix", "torch", "numpy", "scikit-learn", "pillow")
    return (
        f"{described['cpu']} ({described['cpu_capability']}), {described['cores']} cores,"
        f" {described['threads']} threads;"
        f" Python {described['python']}, " + ", ".join(f"{name} {described[name]}" for name in packages)
    )
