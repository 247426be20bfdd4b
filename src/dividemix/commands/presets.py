"""dividemix presets: the presets, and where their numbers come from."""

import argparse

from dividemix.commands import entry
from dividemix.planning.presets import PRESETS

HELP = "list the presets and where their numbers come from"


def add(presets: argparse.ArgumentParser) -> None:
    """Add no flags."""
    presets.set_defaults(command=_presets)


def _presets(arguments: argparse.Namespace) -> int:
    print("The method and the settings of each; other settings are the method's defaults (dividemix train --help).")
    for name, preset in PRESETS.items():
        settings = {"method": preset.method, **preset.fields}
        print(entry(name, preset.origin, "  ".join(f"{key}={value}" for key, value in settings.items())))
    return 0
