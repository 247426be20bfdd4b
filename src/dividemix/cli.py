"""The command line: one parser over the commands, one line and exit code 2 for what a user can mend."""

import argparse
import difflib
import sys
import warnings
from collections.abc import Sequence
from typing import Any, NoReturn

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
        arguments, unknown = parser.parse_known_args(argv)
        if unknown:
            raise InputError(_unknown(unknown[0], arguments.used))
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
    """argparse, with errors as InputError; what it parsed has itself as `used`, or the command's parser inside it."""

    def __init__(self, **settings: Any):
        super().__init__(**settings, allow_abbrev=False)
        self.set_defaults(used=self)

    def error(self, message: str) -> NoReturn:
        raise InputError(message)


def _unknown(word: str, used: argparse.ArgumentParser) -> str:
    """What is wrong with a word that the parser in use does not know, and the flag of its that may be meant."""
    see = f"see {used.prog} --help"
    if not word.startswith("-"):
        return f"{word!r} is one word too many: {see}"
    flag = word.partition("=")[0]
    near = difflib.get_close_matches(flag, used._option_string_actions, n=1)
    return f"unknown flag {flag}: " + (f"did you mean {near[0]}?" if near else see)


def _parser() -> _Parser:
    parser = _Parser(prog="dividemix", description=_DESCRIPTION)
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and stop")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, command in _COMMANDS.items():
        epilog = getattr(command, "EPILOG", None)
        command.add(commands.add_parser(name, help=command.HELP, epilog=epilog))
    return parser


class _Version(argparse.Action):
    """--version, looked up only when asked for."""

    def __call__(self, *_: object, **__: object) -> None:
        from importlib import metadata

        print(metadata.version("dividemix"))
        raise SystemExit(0)
