"""The command line: one parser for all commands; an error that the user can fix is one line and exit code 2."""

import argparse
import os
import re
import shutil
import sys
import textwrap
import warnings
from collections.abc import Collection, Sequence
from itertools import groupby
from typing import Any, NoReturn

from dividemix.commands import (
    compare,
    completion,
    data,
    doctor,
    evaluate,
    export,
    methods,
    predict,
    presets,
    relabel,
    report,
    reproduce,
    resume,
    review,
    share,
    sweep,
    train,
)
from dividemix.engine.memory import is_out_of_memory
from dividemix.engine.processes import is_lost_process, rank, started_by_torchrun
from dividemix.engine.reproducible import restart
from dividemix.errors import DivergedError, InputError, OtherArithmeticError
from dividemix.version import __version__
from dividemix.wording import plainly, unknown_argument, with_dashes

_ORDER = (
    *(train, review, relabel, predict, evaluate, compare, resume, report, export, share),
    *(methods, presets, sweep, reproduce, data, doctor, completion),
)
_COMMANDS = {command.__name__.rpartition(".")[2]: command for command in _ORDER}
_TOGETHER = ("train", "resume")  # commands that several processes can carry out together
_OF_MANY_RUNS = ("reproduce", "sweep")
_ABOUT = """\
Train classifiers on labels that may be wrong, and find the wrong labels. Begin with:
  dividemix train FOLDER              a subfolder for each class; prints the RUN
  dividemix review RUN                decide on the labels that look wrong
  dividemix relabel FOLDER --run RUN  write the corrected labels"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return the exit code: 0, 2 for an error that the user can fix, 130 or 143 if interrupted."""
    # Waiting threads sleep instead of spinning on cores that other processes need. torch reads this when it is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    flags: Collection[str] = ()
    try:
        words = _with_underscores(sys.argv[1:] if argv is None else argv)
        arguments, unknown = _parser(words).parse_known_args(words)
        flags = arguments.used._option_string_actions
        if unknown:
            raise InputError(unknown_argument(unknown[0], arguments.used.prog, flags))
        if "command" not in arguments:
            raise InputError("dividemix needs a COMMAND: see dividemix --help")
        _refuse_torchrun(arguments.used.prog)
        warnings.showwarning = lambda message, *_, **__: None if rank() else _say(f"warning: {message}")
        code: int = arguments.command(arguments)
        return code
    except OtherArithmeticError as error:
        if argv is None:  # a process that was started for this command
            restart()
        return _complain(str(error))
    except (InputError, DivergedError) as error:
        return _complain(with_dashes(str(error), flags))
    except KeyboardInterrupt:
        _say("interrupted")
        return 130
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _complain(f"{where}{error.strerror or error}")
    except (MemoryError, RuntimeError) as error:
        if is_lost_process(error):
            return _complain("another process of this training has ended: dividemix resume continues the run")
        if not is_out_of_memory(error):
            raise
        return _complain("out of memory: use smaller images, fewer at a time, or a smaller network")


def _refuse_torchrun(program: str) -> None:
    """Raise InputError in one of several processes, unless the command, such as dividemix train, is for several."""
    name = program.split()[1]
    if name in _TOGETHER or not started_by_torchrun():
        return
    instead = "--jobs N trains N runs at a time here, --executor slurm trains them on a cluster"
    raise InputError(
        f"{program} is for one process, and torchrun started {os.environ['WORLD_SIZE']}: start it without torchrun;"
        f" {f'{instead}; ' if name in _OF_MANY_RUNS else ''}only {' and '.join(_TOGETHER)} are for several processes"
    )


def _complain(message: str) -> int:
    if rank() == 0:  # of several processes the first speaks for all
        _say(f"error: {message}")
    return 2


def _say(message: str) -> None:
    """Print a message on standard error: one line, which a terminal shows broken between words."""
    line = " ".join(f"dividemix: {message}".split())
    if sys.stderr.isatty():
        line = textwrap.fill(line, shutil.get_terminal_size().columns, break_long_words=False, break_on_hyphens=False)
    print(line, file=sys.stderr)


def _with_underscores(words: Sequence[str]) -> list[str]:
    """The words of the command line, with --batch-size as --batch_size. What follows a lone -- stays as it is."""
    end = words.index("--") if "--" in words else len(words)
    flags = [re.sub("^--[^=]+", lambda flag: "--" + flag[0][2:].replace("-", "_"), word) for word in words[:end]]
    return [*flags, *words[end:]]


class _Help(argparse.HelpFormatter):
    """argparse's help, in which a line of a text that begins with two spaces stays a line, such as an example."""

    def add_argument(self, action: argparse.Action) -> None:
        super().add_argument(action)
        for inner in self._iter_indented_subactions(action):  # argparse forgets their indentation
            needed = self._current_indent + len(self._format_action_invocation(inner))
            self._action_max_length = max(self._action_max_length, needed)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        parts = [list(lines) for _, lines in groupby(text.splitlines(), lambda line: line.startswith("  "))]
        filled = (
            lines if lines[0].startswith("  ") else [super(_Help, self)._fill_text(" ".join(lines), width, indent)]
            for lines in parts
        )
        return "\n".join(line for lines in filled for line in lines)


class _Parser(argparse.ArgumentParser):
    """argparse with InputError for its errors. `used` of the result is the parser of the command, or the main one."""

    def __init__(self, **settings: Any):
        super().__init__(**settings, allow_abbrev=False, formatter_class=_Help)
        self.set_defaults(used=self)

    def error(self, message: str) -> NoReturn:
        raise InputError(plainly(message, self.prog))


def _parser(words: Sequence[str]) -> _Parser:
    parser = _Parser(prog="dividemix", description=_ABOUT)
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, command in _COMMANDS.items():
        added = commands.add_parser(name, help=command.HELP, epilog=getattr(command, "EPILOG", None))
        if command is completion:
            completion.add(added, lambda: _parser(("train",)))
        elif command is not train:
            command.add(added)
        elif name in words:  # its flags depend on the method that the words name
            train.add(added, words)
    return parser


class _Version(argparse.Action):
    """--version."""

    def __call__(self, *_: object, **__: object) -> None:
        print(__version__)
        raise SystemExit(0)
