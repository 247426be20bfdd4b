"""DivideMix: train image classifiers on noisy labels.

Importing this package loads neither torch nor numpy; the names below are looked up when they are first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dividemix.algorithm.dividemix import EpochReport, fit
    from dividemix.api import find_label_issues, train
    from dividemix.config import Config
    from dividemix.engine.state import State
    from dividemix.errors import DivergedError, InputError
    from dividemix.estimator import DivideMixClassifier as DivideMixClassifier
    from dividemix.judging.label_issues import LabelIssues
    from dividemix.model.model import Model
    from dividemix.planning.job import Job
    from dividemix.planning.presets import PRESETS, preset_config
    from dividemix.runs.run import Run

_HOMES = {
    "Config": "config",
    "preset_config": "planning.presets",
    "PRESETS": "planning.presets",
    "InputError": "errors",
    "DivergedError": "errors",
    "State": "engine.state",
    "EpochReport": "algorithm.dividemix",
    "fit": "algorithm.dividemix",
    "Job": "planning.job",
    "Run": "runs.run",
    "LabelIssues": "judging.label_issues",
    "Model": "model.model",
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
