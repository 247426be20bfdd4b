"""dividemix sweep: train one job with every combination of some settings, and compare the results in a table."""

import argparse
from pathlib import Path
from typing import Any

from dividemix.commands.executor import add_executor, chosen_cluster
from dividemix.errors import InputError
from dividemix.methods import METHODS, find_method
from dividemix.planning.default_method import default_method
from dividemix.planning.job import JOB_FIELDS, refuse_unknown_settings
from dividemix.planning.presets import preset_for
from dividemix.settings import Field, fields_of

HELP = "train with every combination of some settings, and compare"
EPILOG = """\
For example: dividemix sweep photos/ --vary method=robust,cross_entropy --vary lr=0.01,0.02 --seeds 3 --jobs 2. Settings
are those of dividemix train, and its flags are taken as well: --epochs 3 is --set epochs=3. Finished runs are not
repeated."""


def add(sweep: argparse.ArgumentParser) -> None:
    """Add the flags of sweep."""
    sweep.add_argument("data", metavar="DATA", help=JOB_FIELDS["data"].doc)
    vary = "a setting and its values; with several --vary, every combination is trained"
    sweep.add_argument("--vary", metavar="NAME=VALUE,VALUE,...", action="append", required=True, help=vary)
    fixed = "a setting that is the same in all runs"
    sweep.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], help=fixed)
    sweep.add_argument("--seeds", metavar="N", type=int, default=1, help="train with seeds 1 to N [1]")
    sweep.add_argument(
        "--out", metavar="DIR", type=Path, default=Path("sweep"), help="folder for the runs and the table [sweep]"
    )
    sweep.add_argument("--jobs", metavar="N", type=int, default=1, help="runs trained at a time [1]")
    add_executor(sweep)
    known = {
        **JOB_FIELDS,
        **{name: field for one in METHODS.values() for name, field in fields_of(one.settings).items()},
    }
    for name in known:
        if name != "data" and f"--{name}" not in sweep._option_string_actions:
            sweep.add_argument(f"--{name}", action=_Fixed, dest="set", help=argparse.SUPPRESS)
    sweep.set_defaults(command=_sweep)


class _Fixed(argparse.Action):
    """--epochs 3 as --set epochs=3."""

    def __call__(self, _: object, namespace: argparse.Namespace, value: object, flag: str | None = None) -> None:
        namespace.set = [*namespace.set, f"{(flag or '').removeprefix('--')}={value}"]


def _sweep(arguments: argparse.Namespace) -> int:
    for flag in ("seeds", "jobs"):
        if getattr(arguments, flag) < 1:
            raise InputError(f"{flag} is {getattr(arguments, flag)}: it must be an integer >= 1")
    pairs = [_pair(text) for text in arguments.vary]
    texts = {name: text.split(",") for name, text in pairs}
    names = [name for name, _ in pairs]
    if twice := [name for name in texts if names.count(name) > 1]:
        raise InputError(f"--vary names {twice[0]} twice: give all its values at once, such as --vary lr=0.01,0.02")
    fixed = dict(map(_pair, arguments.set))
    if twice := [name for name in texts if name in fixed]:
        raise InputError(f"{twice[0]} is both in --vary and in --set: name it once")
    if "seed" in texts or "seed" in fixed:
        raise InputError("seed cannot be set here: --seeds N trains with the seeds 1 to N")
    fields = _fields(arguments.data, texts, fixed)
    given: dict[str, Any] = {"data": arguments.data}
    given |= {name: fields[name].from_text(text) for name, text in fixed.items()}
    varied = {name: [fields[name].from_text(text) for text in values] for name, values in texts.items()}
    cluster = chosen_cluster(arguments)

    from rich.console import Console

    from dividemix.experiments.sweep import make_sweep, run_sweep

    sweep = make_sweep(given, varied, range(1, arguments.seeds + 1))
    console = Console(highlight=False, markup=False, emoji=False)
    return run_sweep(sweep, arguments.out, num_workers=arguments.jobs, console=console, cluster=cluster)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise InputError(f"{text!r}: must be NAME=VALUE, such as lr=0.01")
    return name.replace("-", "_"), value


def _fields(data: str, varied: dict[str, list[str]], fixed: dict[str, str]) -> dict[str, Field]:
    """The settings that the methods of the sweep have. Raises InputError for one that a method does not have."""
    given: dict[str, Any] = {**varied, **fixed}
    preset = preset_for(data, fixed.get("noise", "none"), given.get("encoder"))
    methods = varied.get("method") or [fixed.get("method") or default_method(preset, given)]
    fields = dict(JOB_FIELDS)
    for method in methods:
        refuse_unknown_settings(given, JOB_FIELDS["method"].checked(method))
        fields |= fields_of(find_method(method).settings)
    return fields
