"""The command line: dividemix train | evaluate | presets. Heavy imports wait until a command needs them."""

import argparse
import dataclasses
import difflib
import re
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from dividemix.config import Config
from dividemix.errors import DivergedError, InputError
from dividemix.presets import PRESETS, preset_fields

if TYPE_CHECKING:
    from dividemix.runs.job import Job
    from dividemix.runs.run import Run

_DESCRIPTION = "Train image classifiers on noisy labels with DivideMix."
_SAME_COMMAND = " Go on with the same command and --resume."
_TRAIN_EPILOG = """\
With no DATA: the embedded Fashion-MNIST subset with 50 % symmetric noise, trained by ordinary cross-entropy and by
DivideMix, ending in a table. Settings: defaults, overlaid by --preset, then --config, then flags."""


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
        print("dividemix: interrupted before the training began", file=sys.stderr)
        return 130
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _complain(f"{where}{error.strerror or error}")


def _complain(message: str) -> int:
    print(f"dividemix: error: {' '.join(message.split())}", file=sys.stderr)
    return 2


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    print(f"dividemix: warning: {message}", file=sys.stderr)


def _train(arguments: argparse.Namespace) -> int:
    jobs = _plan(arguments)
    if arguments.print_config:
        print(jobs[-1][0].to_yaml(), end="")
        return 0
    return _train_all(jobs, arguments)


def _plan(arguments: argparse.Namespace) -> "list[tuple[Job, Path]]":
    """The jobs that the arguments ask for, each with its run directory."""
    from dividemix.runs.job import CONFIG_FIELDS, JOB_FIELDS, Job, read_settings

    flags = {name: getattr(arguments, name) for name in JOB_FIELDS + CONFIG_FIELDS}
    given = {} if arguments.config is None else read_settings(arguments.config)
    given |= {name: value for name, value in flags.items() if value is not None}
    out: Path | None = arguments.out
    if arguments.resume and out is not None and (out / "config.yaml").is_file():
        # The run knows its settings; what is given beside them must agree, which loading it checks.
        preset = preset_fields(arguments.preset) if arguments.preset else {}
        return [(Job.of(read_settings(out / "config.yaml") | preset | given), out)]
    if arguments.resume and out is not None and "data" not in given and not any(out.glob("*/config.yaml")):
        raise InputError(f"{out}: there is no run to resume here; to start one, name its data")
    methods = [given.get("method", "dividemix")]
    if "data" not in given:
        given = {"data": "fashion", "noise": "symmetric:0.5"} | given
        if "method" not in given:
            methods = ["cross_entropy", "dividemix"]
    preset_name = arguments.preset or ("fashion" if given["data"] == "fashion" else None)
    settings = (preset_fields(preset_name) if preset_name else {}) | given
    jobs = [Job.of(settings | {"method": method}) for method in methods]
    if out is None:
        return [(job, Path("runs") / _run_name(job)) for job in jobs]
    return [(job, out / job.method if len(jobs) > 1 else out) for job in jobs]


def _run_name(job: "Job") -> str:
    """A directory name that tells the runs of different jobs apart at a glance."""
    words = [Path(job.data).stem, job.noise, job.method, f"seed{job.config.seed}"]
    return re.sub(r"[^\w.-]+", "-", "-".join(word for word in words if word != "none"))


def _train_all(jobs: "list[tuple[Job, Path]]", arguments: argparse.Namespace) -> int:
    """Train each job in its directory, then show the table."""
    import torch

    from dividemix.display import console, result_table, watch
    from dividemix.engine.interrupts import Interrupted, Interrupts
    from dividemix.runs.directory import refuse_existing
    from dividemix.runs.run import Run

    if not arguments.resume:
        for _, out in jobs:  # all of them, before the first is trained
            refuse_existing(out, overwrite=arguments.overwrite)
    summaries = []
    for job, out in jobs:
        if arguments.resume and (out / "config.yaml").is_file():
            run = Run.load(out, job)
        else:
            run = Run.create(out, job, overwrite=arguments.overwrite)
        console.print(_headline(run), soft_wrap=not console.is_terminal)
        try:
            with Interrupts():
                watch(run)
        except Interrupted as interrupt:
            console.print(
                f"stopped by {interrupt}: {run.saved_epoch} of {job.config.epochs} epochs are saved."
                + (f" Go on with: dividemix train --resume --out {out}" if len(jobs) == 1 else _SAME_COMMAND),
                soft_wrap=True,
            )
            return 128 + interrupt.number
        except (MemoryError, torch.OutOfMemoryError):
            raise InputError(
                f"out of memory: take a smaller --batch_size or --net_width ({run.saved_epoch} epochs are saved)"
            ) from None
        summaries.append(run.summary())
    console.print(result_table(summaries))
    for _, out in jobs:
        console.print(f"run directory: {out}", soft_wrap=True)
    return 0


def _headline(run: "Run") -> str:
    """What is about to be trained, in one line."""
    train, noise = run.material.train, run.material.noise
    config = run.job.config
    words = [
        f"{run.job.method} on {run.job.data}: {len(train.labels)} images of {len(run.material.classes)} classes",
        f"noise {run.job.noise}, {noise.true_rate:.1%} of the labels are wrong now" if noise else "labels as given",
        f"{config.net} of width {config.net_width}, {config.epochs} epochs, seed {config.seed}",
    ]
    if run.finished:
        words.append("already finished")
    elif run.state.epoch:
        words.append(f"going on after epoch {run.state.epoch}")
    return "; ".join(words)


def _evaluate(arguments: argparse.Namespace) -> int:
    from rich.table import Table

    from dividemix.display import console
    from dividemix.runs import scoring
    from dividemix.runs.directory import RunDirectory
    from dividemix.runs.job import Job
    from dividemix.runs.run import Run

    job = RunDirectory(arguments.run).read_job()
    places = {name: getattr(arguments, name) for name in ("root", "device") if getattr(arguments, name) is not None}
    run = Run.load(arguments.run, Job.of(job.values() | places), to_train=False)
    if arguments.checkpoint == "best":
        run.load_best()
    probs = run.test_probs()
    assert run.material.test is not None  # test_probs has raised otherwise
    labels = run.material.test.labels.cpu().numpy()
    console.print(f"{arguments.run}: {run.job.method}, {arguments.checkpoint} checkpoint, {len(labels)} test images")
    console.print(f"accuracy {scoring.accuracy(probs.mean(axis=0), labels):.2f} %", end="")
    alone = ", ".join(f"{scoring.accuracy(net_probs, labels):.2f} %" for net_probs in probs)
    console.print(f" ({alone} by each network alone)" if len(probs) > 1 else "")
    table = Table("class", title="Recall in percent", title_justify="left")
    table.add_column("recall", justify="right")
    for name, recall in scoring.class_recall(probs.mean(axis=0), labels, run.material.classes).items():
        table.add_row(name, "-" if recall is None else f"{recall:.1f}")
    console.print(table)
    return 0


def _presets(arguments: argparse.Namespace) -> int:
    for name, preset in PRESETS.items():
        fields = "  ".join(f"{key}={value}" for key, value in preset.fields.items())
        print(f"{name:16} {preset.origin}\n{'':16} {fields}")
    return 0


class _Parser(argparse.ArgumentParser):
    """argparse, with errors as InputError and a guess at what a misspelt flag was meant to be."""

    def error(self, message: str) -> NoReturn:
        unknown = re.match(r"unrecognized arguments: (--[^\s=]+)", message)
        if unknown:
            near = difflib.get_close_matches(unknown[1], ["--" + name for name in _train_flags()], n=1)
            message = f"unknown flag {unknown[1]}: " + (f"did you mean {near[0]}?" if near else "see dividemix --help")
        raise InputError(message)


def _train_flags() -> list[str]:
    return [*(field.name for field in dataclasses.fields(Config)), *_OTHER_FLAGS]


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="dividemix", description=_DESCRIPTION, allow_abbrev=False)
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and stop")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_train(commands.add_parser("train", help="train on noisy labels", epilog=_TRAIN_EPILOG, allow_abbrev=False))
    evaluate = commands.add_parser("evaluate", help="test a trained run", allow_abbrev=False)
    evaluate.add_argument("run", metavar="RUN", type=Path, help="a run directory")
    evaluate.add_argument("--checkpoint", choices=("last", "best"), default="last", help="which one (default: last)")
    evaluate.add_argument("--root", metavar="DIR", help="where the data set is now, if it has moved")
    evaluate.add_argument("--device", metavar="NAME", help="where to compute, if not where the run was trained")
    evaluate.set_defaults(command=_evaluate)
    presets = commands.add_parser("presets", help="list the presets and where their numbers come from")
    presets.set_defaults(command=_presets)
    return parser


def _add_train(train: argparse.ArgumentParser) -> None:
    train.set_defaults(command=_train)
    train.add_argument("data", metavar="DATA", nargs="?", help="fashion, cifar10, cifar100, or a path to an .npz file")
    helps = dict(_OTHER_FLAGS)
    train.add_argument("--root", metavar="DIR", help=helps["root"])
    train.add_argument("--limit_train", metavar="N", type=int, help=helps["limit_train"])
    train.add_argument("--noise", metavar="KIND:RATE", help=helps["noise"])
    train.add_argument("--preset", metavar="NAME", help=helps["preset"])
    train.add_argument("--method", metavar="NAME", help=helps["method"])
    train.add_argument("--out", metavar="DIR", type=Path, help=helps["out"])
    train.add_argument("--resume", action="store_true", help=helps["resume"])
    train.add_argument("--overwrite", action="store_true", help=helps["overwrite"])
    train.add_argument("--config", metavar="FILE", type=Path, help=helps["config"])
    train.add_argument("--print_config", action="store_true", help=helps["print_config"])
    fields = train.add_argument_group("settings of the training (default in brackets)")
    for field in dataclasses.fields(Config):
        default = str(field.default).lower() if field.type is bool else field.default
        fields.add_argument(
            f"--{field.name}",
            metavar=_metavar(field),
            type=_truth if field.type is bool else field.type,
            help=f"{field.metadata['doc']} [{default}]".replace("%", "%%"),
        )


def _metavar(field: dataclasses.Field[Any]) -> str:
    """What --help shows for a field's value."""
    if field.type is bool:
        return "true|false"
    choices: tuple[str, ...] = field.metadata.get("choices", ())
    return "|".join(choices) or _METAVARS[field.type]


def _truth(text: str) -> bool:
    """A flag's true or false."""
    words = {"true": True, "false": False}
    if text.lower() not in words:
        raise argparse.ArgumentTypeError(f"{text!r}: true or false is needed")
    return words[text.lower()]


class _Version(argparse.Action):
    """--version, looked up only when asked for."""

    def __call__(self, *_: object, **__: object) -> None:
        from importlib import metadata

        print(metadata.version("dividemix"))
        raise SystemExit(0)


_METAVARS: dict[Any, str] = {int: "INT", float: "FLOAT", str: "NAME"}

_OTHER_FLAGS = {
    "root": "the folder or archive that holds the data set",
    "limit_train": "take only the first N / C training images of each of the C classes",
    "noise": "noise to add: symmetric:0.5, symmetric_other:0.4, asymmetric:0.4, pair_flip:0.3, matrix:FILE, file:FILE",
    "preset": "settings of one of the paper's experiments; see dividemix presets",
    "method": "dividemix (default) or cross_entropy",
    "out": "run directory (default: runs/ and a name made of data, noise, method and seed)",
    "resume": "go on with the run in the run directory, or start it if there is none",
    "overwrite": "replace the run in the run directory",
    "config": "YAML file of settings, as config.yaml of a run; flags win over it",
    "print_config": "print all settings as YAML and stop",
}
