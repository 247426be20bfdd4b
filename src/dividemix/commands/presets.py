"""dividemix presets: the presets, and where their numbers come from."""

import argparse

from dividemix.presets import PRESETS

HELP = "list the presets and where their numbers come from"


def add(presets: argparse.ArgumentParser) -> None:
    """No flags."""
    presets.set_defaults(command=_presets)


def _presets(arguments: argparse.Namespace) -> int:
    for name, preset in PRESETS.items():
        fields = "  ".join(f"{key}={value}" for key, value in preset.fields.items())
        print(f"{name:16} {preset.origin}\n{'':16} {fields}")
    return 0
