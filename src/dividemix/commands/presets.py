"""dividemix presets: the presets, and where their numbers come from."""

import argparse
import shutil
import textwrap

from dividemix.planning.presets import PRESETS

HELP = "list the presets and where their numbers come from"


def add(presets: argparse.ArgumentParser) -> None:
    """No flags."""
    presets.set_defaults(command=_presets)


def _presets(arguments: argparse.Namespace) -> int:
    print("What each sets; every other setting is as `dividemix train --help` has it: the paper's for CIFAR-10.")
    width, indent = shutil.get_terminal_size().columns, " " * 17
    for name, preset in PRESETS.items():
        fields = "  ".join(f"{key}={value}" for key, value in preset.fields.items())
        print(f"{name:16} {preset.origin}")
        print(textwrap.fill(fields, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False))
    return 0
