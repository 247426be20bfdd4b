"""The command: measures, prints one table, and writes one flat JSON object if asked.

Usage, from the root of the repository: python -m benchmarks [NAME ...] [--quick] [--cifar DIR] [--json FILE]
"""

import argparse
import importlib
import importlib.util
import json
import os
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.contract import Options, Outcome
from benchmarks.machine import headline, machine
from dividemix import atomic
from dividemix.errors import InputError

NAMES = ("step", "views", "epoch", "codivide", "mixture", "memory", "scaling", "startup", "processes")
_QUIET_LOAD = 0.7


def main() -> int:
    """Run the benchmarks that were named, or all; returns the exit code."""
    arguments = _arguments()
    options = Options(arguments.quick, arguments.cifar)
    console = Console(width=None if sys.stdout.isatty() else 150, highlight=False)
    described, load = machine(), os.getloadavg()[0]
    console.print(headline(described), soft_wrap=True)
    if load > _QUIET_LOAD:
        console.print(
            f"warning: the load average is {load:.2f}, above {_QUIET_LOAD}: other work runs on this machine"
            " and will blur the figures",
            soft_wrap=True,
        )
    try:
        if options.cifar is not None:
            _check_cifar(options)  # before minutes are spent on the rest
        outcomes = {name: _run(name, options, console) for name in arguments.names or NAMES}
    except InputError as error:
        print(f"benchmarks: error: {error}", file=sys.stderr)
        return 2
    console.print(_table(outcomes, options))
    if arguments.json is not None:
        flat = described | {"load": load, "quick": options.quick}
        for outcome in outcomes.values():
            flat |= outcome.figures
        atomic.write_text(arguments.json, json.dumps(flat, indent=2) + "\n")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure DivideMix on this machine.")
    parser.add_argument("names", metavar="NAME", nargs="*", help=f"{', '.join(NAMES)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="small sizes, about two minutes; figures mean little")
    parser.add_argument("--cifar", metavar="DIR", type=Path, help="CIFAR-10, for epoch and codivide (else synthetic)")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the figures as one flat object")
    arguments = parser.parse_args()
    for name in arguments.names:
        if name not in NAMES:
            parser.error(f"unknown benchmark {name!r}: known are {', '.join(NAMES)}")
    if arguments.json is not None and not arguments.json.absolute().parent.is_dir():
        parser.error(f"--json {arguments.json}: there is no such folder")
    for module, package in (("PIL", "pillow"), ("sklearn", "scikit-learn")):
        if importlib.util.find_spec(module) is None:
            parser.error(f"{package} is not installed: pip install '.[benchmarks]'")
    return arguments


def _check_cifar(options: Options) -> None:
    from benchmarks.subject import pictures

    pictures(options)


def _run(name: str, options: Options, console: Console) -> Outcome:
    with console.status(f"measuring {name}"):
        outcome: Outcome = importlib.import_module(f"benchmarks.{name}").run(options)
    for row in outcome.rows:  # at once: the whole takes a while
        console.print(f"{name}: {row.what}: {row.ratio or row.ours}", soft_wrap=True)
    return outcome


def _table(outcomes: dict[str, Outcome], options: Options) -> Table:
    title = "quick: small sizes, figures mean little" if options.quick else None
    table = Table("benchmark", "what", title=title)
    for column in ("plain", "ours", "ratio", "goal"):
        table.add_column(column, justify="right", no_wrap=column != "ours")
    for name, outcome in outcomes.items():
        for i, row in enumerate(outcome.rows):
            table.add_row("" if i else name, row.what, row.plain, row.ours, row.ratio, row.goal)
        table.add_section()
    return table


if __name__ == "__main__":
    sys.exit(main())
