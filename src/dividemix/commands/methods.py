"""dividemix methods: the methods, a line each."""

import argparse
import inspect

from dividemix.commands import entry
from dividemix.methods import METHODS

HELP = "list the methods"


def add(methods: argparse.ArgumentParser) -> None:
    """Add no flags."""
    methods.set_defaults(command=_methods)


def _methods(arguments: argparse.Namespace) -> int:
    abouts = {name: inspect.getdoc(inspect.getmodule(type(method))) or "" for name, method in METHODS.items()}
    abouts["your own"] = "--method package.module:OBJECT. Settings of a method: dividemix train --method NAME --help"
    for name, about in abouts.items():
        print(entry(name, about.partition("\n")[0], column=max(map(len, abouts))))
    return 0
