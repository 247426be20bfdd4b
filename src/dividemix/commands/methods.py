"""dividemix methods: which method to use, then all of them, a line each."""

import argparse
import inspect

from dividemix.commands import entry, paragraph
from dividemix.methods import DEFAULT_METHOD, METHODS
from dividemix.planning.presets import DEFAULT, find_preset

HELP = "list the methods"


def add(methods: argparse.ArgumentParser) -> None:
    """Add no flags."""
    methods.set_defaults(command=_methods)


def _methods(arguments: argparse.Namespace) -> int:
    preset = find_preset(DEFAULT)
    recipes = [preset.method_for_images, preset.method_for_vectors, preset.method_for_rows, preset.method_for_texts]
    own = [name for name in (*recipes, preset.method) if name is not None]
    images, vectors, rows, _ = recipes
    print(
        paragraph(
            f"For your own data, name no method: images are trained by {images}, vectors and texts by {vectors}, tables"
            f" by {rows}. For the paper's results, use --method {DEFAULT_METHOD}."
        )
    )
    others = [name for name in METHODS if name not in (*own, DEFAULT_METHOD)]
    groups = {"For your own data": own, "The paper": [DEFAULT_METHOD], "To compare with": others}
    column = max(map(len, METHODS))
    for title, names in groups.items():
        print(f"\n{title}:")
        for name in names:
            about = inspect.getdoc(inspect.getmodule(type(METHODS[name]))) or ""
            trusted = " Needs --trusted." if METHODS[name].needs_trusted else ""
            print(entry(name, about.partition("\n")[0] + trusted, column=column))
    own_words = (
        "Your own method: --method package.module:OBJECT. Settings of a method: dividemix train --method NAME --help"
    )
    print("\n" + paragraph(own_words))
    return 0
