"""The command line: one parser over the commands, one line and exit code 2 for what a user can mend."""

import argparse
import difflib
import re
import sys
import warnings
from collections.abc import Sequence
from typing import NoReturn

from dividemix.commands import data, evaluate, export, predict, presets, relabel, reproduce, train
from dividemix.engine.memory import is_out_of_memory
from dividemix.errors import DivergedError, InputError

_DESCRIPTION = "Train image classifiers on noisy labels with DivideMix."
_COMMANDS = {
    "train": train,
    "evaluate": evaluate,
    "predict": predict,
    "export": export,
    "relabel": relabel,
    "presets": presets,
    "reproduce": reproduce,
    "data": data,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code: 0, 2 for what the user can mend, 130 or 143 when interrupted."""
    parser = _parser()
    try:
        arguments = parser.parse_args(argv)
        warnings.showwarning = _show_warning
        code: int = arguments.command(arguments)
        return code
    except (InputError, DivergedError) as error:
        return _complain(str(error))
    except KeyboardInterrupt:
        print("dividemix: interrupted", file=sys.stderr)
        return 130
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _complain(f"{where}{error.strerror or error}")
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        return _complain("out of memory: take smaller images, fewer at a time, or a smaller network")


def _complain(message: str) -> int:
    print(f"dividemix: error: {' '.join(message.split())}", file=sys.stderr)
    return 2


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    print(f"dividemix: warning: {message}", file=sys.stderr)


class _Parser(argparse.ArgumentParser):
    """argparse, with errors as InputError and a guess at which of `flags` a misspelt one was meant to be."""

    flags: Sequence[str] = ()

    def error(self, message: str) -> NoReturn:
        unknown = re.match(r"unrecognized arguments: (--[^\s=]+)", message)
        if unknown:
            near = difflib.get_close_matches(unknown[1], self.flags, n=1)
            message = f"unknown flag {unknown[1]}: " + (f"did you mean {near[0]}?" if near else "see dividemix --help")
        raise InputError(message)


def _parser() -> _Parser:
    parser = _Parser(prog="dividemix", description=_DESCRIPTION, allow_abbrev=False)
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and stop")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, command in _COMMANDS.items():
        epilog = getattr(command, "EPILOG", None)
        command.add(commands.add_parser(name, help=command.HELP, epilog=epilog, allow_abbrev=False))
    parser.flags = [flag for command in commands.choices.values() for flag in command._option_string_actions]
    return parser


class _Version(argparse.Action):
    """--version, looked up only when asked for."""

    def __call__(self, *_: object, **__: object) -> None:
        from importlib import metadata

        print(metadata.version("dividemix"))
        raise SystemExit(0)
