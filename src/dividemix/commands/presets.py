"""dividemix presets: the presets, and where their numbers come from."""

import argparse

from dividemix.commands import entry
from dividemix.planning.presets import PRESETS, Preset

HELP = "list the presets and where their numbers come from"


def add(presets: argparse.ArgumentParser) -> None:
    """Add no flags."""
    presets.set_defaults(command=_presets)


def _presets(arguments: argparse.Namespace) -> int:
    print("The method and the settings of each; other settings are the method's defaults (dividemix train --help).")
    for name, preset in PRESETS.items():
        settings = {"method": _method(preset), **preset.fields}
        print(entry(name, preset.origin, "  ".join(f"{key}={value}" for key, value in settings.items())))
    return 0


def _method(preset: Preset) -> str:
    """The method, and the others that it has for some kinds of data."""
    others = {
        "images": preset.method_for_images,
        "vectors and texts": preset.method_for_vectors,
        "rows of a table": preset.method_for_rows,
        "texts with finetune": preset.method_for_texts,
    }
    words = [f"{method} for {kind}" for kind, method in others.items() if method is not None]
    return f"{', '.join(words)}, {preset.method} if a setting of it is given" if words else preset.method
