"""DivideMix: train image classifiers on noisy labels.

Importing this package loads neither torch nor numpy; the names below are looked up when they are first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dividemix.algorithm.dividemix import EpochReport, fit
    from dividemix.algorithm.state import State
    from dividemix.config import Config
    from dividemix.errors import DivergedError, InputError
    from dividemix.presets import PRESETS, preset_config
    from dividemix.runs.job import Job
    from dividemix.runs.run import Run

_HOMES = {
    "Config": "config",
    "preset_config": "presets",
    "PRESETS": "presets",
    "InputError": "errors",
    "DivergedError": "errors",
    "State": "algorithm.state",
    "EpochReport": "algorithm.dividemix",
    "fit": "algorithm.dividemix",
    "Job": "runs.job",
    "Run": "runs.run",
}

__all__ = [
    "Config",
    "DivergedError",
    "EpochReport",
    "InputError",
    "Job",
    "PRESETS",
    "Run",
    "State",
    "fit",
    "preset_config",
]


def __getattr__(name: str) -> Any:
    """The public name, imported from its home."""
    if name not in _HOMES:
        raise AttributeError(f"module 'dividemix' has no attribute {name!r}")
    return getattr(importlib.import_module(f"dividemix.{_HOMES[name]}"), name)
