"""DivideMix: train image classifiers on noisy labels.

Importing this package loads neither torch nor numpy: each name below is imported when it is first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

from dividemix.version import __version__ as __version__

if TYPE_CHECKING:
    from dividemix.api import find_label_issues, train
    from dividemix.engine.state import State
    from dividemix.errors import DivergedError, InputError
    from dividemix.estimator import DivideMixClassifier as DivideMixClassifier
    from dividemix.judging.label_issues import LabelIssues
    from dividemix.methods import METHODS, find_method
    from dividemix.methods.loop import fit
    from dividemix.methods.method import EpochReport, Method, MethodSettings, Phase
    from dividemix.model.model import Model
    from dividemix.planning.job import Job
    from dividemix.planning.presets import PRESETS, preset_settings
    from dividemix.runs.run import Run

_HOMES = {
    "api": ("find_label_issues", "train"),
    "engine.state": ("State",),
    "errors": ("DivergedError", "InputError"),
    "estimator": ("DivideMixClassifier",),
    "judging.label_issues": ("LabelIssues",),
    "methods": ("METHODS", "find_method"),
    "methods.loop": ("fit",),
    "methods.method": ("EpochReport", "Method", "MethodSettings", "Phase"),
    "model.model": ("Model",),
    "planning.job": ("Job",),
    "planning.presets": ("PRESETS", "preset_settings"),
    "runs.run": ("Run",),
}

# DivideMixClassifier needs an extra, and `from dividemix import *` must work without it.
__all__ = ["train", "find_label_issues", "Run", "Model", "LabelIssues", "Job"]
__all__ += ["PRESETS", "preset_settings", "InputError", "DivergedError"]
__all__ += ["METHODS", "find_method", "fit", "Method", "MethodSettings", "Phase", "EpochReport", "State"]


def __getattr__(name: str) -> Any:
    """The public name, imported from its module."""
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"dividemix.{home}"), name)
    raise AttributeError(f"module 'dividemix' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, without loading them."""
    return sorted([*__all__, "DivideMixClassifier", "__version__", "__doc__"])
