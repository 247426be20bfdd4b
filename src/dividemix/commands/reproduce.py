"""dividemix reproduce: train the runs of a table or figure of the paper, and compare with the published numbers."""

import argparse
import shlex
import sys
from pathlib import Path

from dividemix.commands.executor import add_executor, chosen_cluster
from dividemix.errors import InputError
from dividemix.experiments import FIGURES, SCALES, TABLES

HELP = "reproduce a table or figure of the paper"
EPILOG = """\
--scale paper is the full setting of the paper and needs a GPU. --scale mini is the same experiment, small enough for
two cores: on the embedded images, or on CIFAR-10 if --root has it. A table may still take an hour or more: how long is
measured and printed before the first run is trained. Ctrl-C stops, the same command continues, and finished runs are
not repeated. --row and --column train less."""


def add(reproduce: argparse.ArgumentParser) -> None:
    """Add the flags of reproduce."""
    about = TABLES | FIGURES
    described = ", ".join(f"{name} ({what})" for name, what in about.items())
    reproduce.add_argument("name", metavar="NAME", choices=tuple(about), help=described)
    reproduce.add_argument("--scale", choices=SCALES, default="mini", help="see below [mini]")
    reproduce.add_argument("--seeds", metavar="N", type=int, default=1, help="train with seeds 1 to N [1]")
    row = "of a table: only the row with this name; may be given several times [all]"
    reproduce.add_argument("--row", metavar="NAME", action="append", default=[], help=row)
    column = "of a table: only the columns that contain this text; may be given several times [all]"
    reproduce.add_argument("--column", metavar="TEXT", action="append", default=[], help=column)
    reproduce.add_argument("--root", metavar="DIR", help="the folder that contains the data sets (mini: CIFAR-10)")
    reproduce.add_argument("--weights", metavar="FILE", help="weights to start from (ResNet-50 on Clothing1M)")
    place = "the folder for runs/ and the results [reproduced]"
    reproduce.add_argument("--out", metavar="DIR", type=Path, default=Path("reproduced"), help=place)
    reproduce.add_argument("--jobs", metavar="N", type=int, default=1, help="runs trained at a time [1]")
    add_executor(reproduce)
    reproduce.add_argument("--dry_run", action="store_true", help="print the settings of every run and stop")
    reproduce.set_defaults(command=_reproduce)


def _reproduce(arguments: argparse.Namespace) -> int:
    from dividemix.experiments.plans import make_plan, to_yaml

    for flag in ("seeds", "jobs"):
        if getattr(arguments, flag) < 1:
            raise InputError(f"{flag} is {getattr(arguments, flag)}: it must be an integer >= 1")
    plan = make_plan(
        arguments.name,
        arguments.scale,
        num_seeds=arguments.seeds,
        root=arguments.root,
        weights=arguments.weights,
        rows=arguments.row,
        columns=arguments.column,
    )
    if arguments.dry_run:
        sys.stdout.write(to_yaml(plan))
        return 0

    from rich.console import Console

    from dividemix.experiments.runner import reproduce

    console = Console(highlight=False, markup=False, emoji=False)
    return reproduce(
        plan,
        arguments.out,
        num_workers=arguments.jobs,
        command=_command(arguments),
        console=console,
        cluster=chosen_cluster(arguments),
    )


def _command(arguments: argparse.Namespace) -> str:
    """The command that makes the same result, wherever the data is."""
    words = ["dividemix", "reproduce", arguments.name, "--scale", arguments.scale]
    if arguments.name in TABLES:
        words += ["--seeds", str(arguments.seeds)]
    words += [word for row in arguments.row for word in ("--row", row)]
    words += [word for column in arguments.column for word in ("--column", column)]
    words += ["--root", "DIR"] if arguments.root else []
    words += ["--weights", "FILE"] if arguments.weights else []
    # The number of jobs sets the threads of a run, and these its last digits.
    words += ["--jobs", str(arguments.jobs)] if arguments.jobs > 1 else []
    return shlex.join(words)
