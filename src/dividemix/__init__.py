"""DivideMix: train image classifiers on noisy labels.

Importing this package loads neither torch nor numpy; the names below are looked up when they are first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dividemix.algorithm.dividemix import EpochReport, fit
    from dividemix.algorithm.state import State
    from dividemix.api import find_label_issues, train
    from dividemix.config import Config
    from dividemix.errors import DivergedError, InputError
    from dividemix.estimator import DivideMixClassifier as DivideMixClassifier
    from dividemix.presets import PRESETS, preset_config
    from dividemix.runs.job import Job
    from dividemix.runs.label_issues import LabelIssues
    from dividemix.runs.model import Model
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
    "LabelIssues": "runs.label_issues",
    "Model": "runs.model",
    "train": "api",
    "find_label_issues": "api",
    "DivideMixClassifier": "estimator",
}

# DivideMixClassifier is not among them: it needs an extra, and a star must not.
__all__ = [
    "Config",
    "DivergedError",
    "EpochReport",
    "InputError",
    "Job",
    "LabelIssues",
    "Model",
    "PRESETS",
    "Run",
    "State",
    "find_label_issues",
    "fit",
    "preset_config",
    "train",
]


def __getattr__(name: str) -> Any:
    """The public name, imported from its home."""
    if name not in _HOMES:
        raise AttributeError(f"module 'dividemix' has no attribute {name!r}")
    return getattr(importlib.import_module(f"dividemix.{_HOMES[name]}"), name)
