"""dividemix train: plan the jobs that the flags ask for, train each in its run directory, show the table."""

import argparse
import dataclasses
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dividemix.config import Config
from dividemix.errors import InputError
from dividemix.planning.presets import PRESETS, preset_fields, preset_for

if TYPE_CHECKING:
    from dividemix.data.source import Source
    from dividemix.planning.choices import Choice
    from dividemix.planning.job import Job
    from dividemix.runs.run import Run

HELP = "train on noisy labels"
EPILOG = """\
With no DATA: the embedded Fashion-MNIST subset with 50 % symmetric noise, trained by ordinary cross-entropy and by
DivideMix, ending in a table. Settings: defaults, overlaid by --preset, then --config, then flags."""
_SAME_COMMAND = " Go on with the same command and --resume."


def add(train: argparse.ArgumentParser) -> None:
    """The flags of train."""
    train.set_defaults(command=_train)
    train.add_argument(
        "data",
        metavar="DATA",
        nargs="?",
        help="a folder with one subfolder of images per class; a .csv or .tsv with columns path and label; a .parquet"
        " or .npz file; or fashion, cifar10, cifar100, clothing1m, webvision",
    )
    train.add_argument("--test", metavar="DATA", help="images to test on: a second folder or file of the same kinds")
    train.add_argument("--root", metavar="DIR", help="the folder, or for CIFAR the archive, that holds a built-in set")
    train.add_argument("--path_column", metavar="NAME", help="the table's column of image paths (default: path)")
    train.add_argument("--label_column", metavar="NAME", help="the table's column of labels (default: label)")
    train.add_argument("--image_size", metavar="PIXELS", type=int, help="side to which images are resized and cropped")
    train.add_argument(
        "--memory_gb", metavar="GB", type=float, help="hold images in memory up to this size (default: 4)"
    )
    train.add_argument(
        "--limit_train",
        metavar="N",
        type=int,
        help="take only the first N / C training images of each of the C classes",
    )
    train.add_argument(
        "--noise",
        metavar="KIND:RATE",
        help="noise to add: symmetric:0.5, symmetric_other:0.4, asymmetric:0.4, pair_flip:0.3, matrix:FILE, file:FILE",
    )
    train.add_argument(
        "--holdout",
        metavar="SHARE",
        type=float,
        help="share of the samples held out, with labels as noisy as all, to choose the epoch to keep (default: 0;"
        " preset default: 0.1)",
    )
    train.add_argument("--method", metavar="NAME", help="dividemix (default) or cross_entropy")
    train.add_argument("--weights", metavar="FILE", help="weights to start from: .safetensors, .pth")
    train.add_argument(
        "--preset",
        metavar="NAME",
        help="default (data of your own: settings chosen to fit it), or one of the paper's experiments; see dividemix"
        " presets",
    )
    train.add_argument(
        "--minutes", metavar="M", type=float, help="preset default: choose a schedule that takes this long"
    )
    train.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        help="run directory (default: runs/ and a name of data, noise, method and seed)",
    )
    train.add_argument(
        "--resume", action="store_true", help="go on with the run in the run directory, or start it if there is none"
    )
    train.add_argument("--overwrite", action="store_true", help="replace the run in the run directory")
    train.add_argument(
        "--trust_net", action="store_true", help="with --resume: import a net of the run that is not dividemix's own"
    )
    train.add_argument(
        "--config", metavar="FILE", type=Path, help="YAML file of settings, as config.yaml of a run; flags win over it"
    )
    train.add_argument("--print_config", action="store_true", help="print all settings as YAML and stop")
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


@dataclass(frozen=True)
class _Plan:
    """A job and its run directory; with the data, if that had to be read to plan, and the choices made by it.

    `trust_net`: the net, whatever it is, was named by the user and not by the run directory alone; `preset`: the one
    that the data and its noise have, where none was named.
    """

    job: "Job"
    out: Path
    trust_net: bool = False
    preset: str | None = None
    source: "Source | None" = None
    choices: "tuple[Choice, ...]" = ()


def _train(arguments: argparse.Namespace) -> int:
    plans = _plan(arguments)
    if arguments.print_config:
        for plan in plans[:-1]:
            print(f"# before it, the same by --method {plan.job.method}")
        print(plans[-1].job.to_yaml(), end="")
        return 0
    return _train_all(plans, arguments)


def _plan(arguments: argparse.Namespace) -> list[_Plan]:
    """What the arguments ask for."""
    from dividemix.planning.job import CONFIG_FIELDS, JOB_FIELDS, Job, read_settings

    flags = {name: getattr(arguments, name) for name in JOB_FIELDS + CONFIG_FIELDS}
    given = {} if arguments.config is None else read_settings(arguments.config)
    given |= {name: value for name, value in flags.items() if value is not None}
    if arguments.resume and arguments.overwrite:
        raise InputError("--resume goes on with a run, --overwrite replaces it: give one of them")
    out: Path | None = arguments.out
    if arguments.resume and out is not None and (out / "config.yaml").is_file():
        return [_resumption(out, given, arguments.preset)]
    if arguments.resume and out is not None and "data" not in given and not any(out.glob("*/config.yaml")):
        raise InputError(f"{out}: there is no run to resume here; to start one, name its data")
    methods = [given.get("method", "dividemix")]
    if "data" not in given:
        given = {"data": "fashion", "noise": "symmetric:0.5"} | given
        if "method" not in given:
            methods = ["cross_entropy", "dividemix"]
    preset = arguments.preset or preset_for(str(given["data"]), str(given.get("noise", "none")))
    if arguments.minutes is not None and (preset != "default" or "epochs" in given):
        raise InputError("--minutes chooses the epochs of --preset default: leave out --epochs and other presets")
    settings = preset_fields(preset) | given
    plans = []
    for method in methods:
        job = Job.of(settings | {"method": method})
        place = Path("runs") / _run_name(job) if out is None else out / method if len(methods) > 1 else out
        if arguments.resume and (place / "config.yaml").is_file():
            plans.append(_resumption(place, given | {"method": method}, arguments.preset))
        else:
            chosen = preset if not arguments.preset and preset_fields(preset).keys() - given.keys() else None
            plans.append(
                _fitted(job, place, given, arguments) if preset == "default" else _Plan(job, place, preset=chosen)
            )
    return plans


def _resumption(out: Path, given: dict[str, Any], preset: str | None) -> _Plan:
    """The run that is there: it knows its settings; what is given beside them must agree, which loading it checks."""
    from dividemix.planning.job import Job, read_settings

    asked = preset_fields(preset) if preset not in (None, "default") else {}  # default was fitted to the data then
    job = Job.of(read_settings(out / "config.yaml") | asked | given)
    return _Plan(job, out, trust_net="net" in given)


def _fitted(job: "Job", out: Path, given: dict[str, Any], arguments: argparse.Namespace) -> _Plan:
    """The job with the settings of the preset `default` that its data calls for."""
    from dividemix.planning.defaults import choose
    from dividemix.planning.job import Job
    from dividemix.runs.directory import refuse_existing

    if not arguments.print_config:
        refuse_existing(out, overwrite=arguments.overwrite)  # before minutes are spent on reading data
    source, choices = choose(job, given, minutes=arguments.minutes)
    return _Plan(
        Job.of(job.values() | {choice.name: choice.value for choice in choices}),
        out,
        source=source,
        choices=tuple(choices),
    )


def _run_name(job: "Job") -> str:
    """A directory name that tells the runs of different jobs apart at a glance."""
    from dividemix.planning.job import data_name

    words = [data_name(job.data), job.noise, job.method, f"seed{job.config.seed}"]
    return re.sub(r"[^\w.-]+", "-", "-".join(word for word in words if word != "none"))


def _train_all(plans: list[_Plan], arguments: argparse.Namespace) -> int:
    """Train each job in its directory, then show the table."""
    from dividemix.display import console, result_table, watch
    from dividemix.engine.interrupts import Interrupted, Interrupts
    from dividemix.engine.memory import is_out_of_memory
    from dividemix.runs.directory import refuse_existing
    from dividemix.runs.run import Run

    if not arguments.resume:
        for plan in plans:  # all of them, before the first is trained
            refuse_existing(plan.out, overwrite=arguments.overwrite)
    summaries = []
    for plan in plans:
        job, out = plan.job, plan.out
        if arguments.resume and (out / "config.yaml").is_file():
            run = Run.load(out, job, trust_net=arguments.trust_net or plan.trust_net)
        else:
            run = Run.create(out, job, overwrite=arguments.overwrite, source=plan.source, choices=plan.choices)
        if plan.preset:
            console.print(f"preset {plan.preset}: {PRESETS[plan.preset].origin}")
        _show_beginning(run)
        console.print(_headline(run), soft_wrap=not console.is_terminal)
        try:
            with Interrupts():
                watch(run)
        except Interrupted as interrupt:
            console.print(
                f"stopped by {interrupt}: {run.saved_epoch} of {job.config.epochs} epochs are saved."
                + (f" Go on with: {_resume_command(job, out)}" if len(plans) == 1 else _SAME_COMMAND),
                soft_wrap=True,
            )
            return 128 + interrupt.number
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            raise InputError(
                f"out of memory: take a smaller --batch_size or --net_width ({run.saved_epoch} epochs are saved)"
            ) from None
        summaries.append(run.directory.read_summary())
    if any(summary["final_acc"] is not None for summary in summaries):
        console.print(result_table(summaries))
    for plan, summary in zip(plans, summaries, strict=True):
        console.print(_what_was_found(plan.out, summary), soft_wrap=True)
    return 0


def _resume_command(job: "Job", out: Path) -> str:
    return f"dividemix train --resume --out {out}" + (" --trust_net" if ":" in job.config.net else "")


def _what_was_found(out: Path, summary: dict[str, Any]) -> str:
    """A finished run in one line."""
    return (
        f"{out}: {summary['noise_rate']:.1%} of the labels look wrong; report.html to look at, label_issues.csv"
        f" (suspects, worst first), model/ for dividemix predict {out}"
    )


def _show_beginning(run: "Run") -> None:
    """What was left out of the data, what was taken of a file of weights, and the settings that were chosen."""
    from dividemix.display import console

    if run.left_out is not None:
        console.print(run.left_out, soft_wrap=True)
    if run.weights is not None:
        console.print(str(run.weights), soft_wrap=True)
    elif run.job.data == "clothing1m" and not run.state.epoch:
        console.print("starts from random weights; the paper's runs start from ImageNet's: --weights FILE")
    if not run.state.epoch:
        for choice in run.choices:
            console.print(f"{choice.name} {choice.value}: {choice.reason}", soft_wrap=True)


def _headline(run: "Run") -> str:
    """What is about to be trained, in one line."""
    train, noise = run.material.train, run.material.noise
    config = run.job.config
    words = [
        f"{run.job.method} on {run.job.data}: {len(train.labels)} images of {len(run.material.classes)} classes",
        f"noise {run.job.noise}, {noise.true_rate:.1%} of the labels are wrong now" if noise else "labels as given",
        f"{config.net_words}, {config.epochs} epochs, seed {config.seed}",
    ]
    if run.finished:
        words.append("already finished")
    elif run.state.epoch:
        words.append(f"going on after epoch {run.state.epoch}")
    return "; ".join(words)


_METAVARS: dict[Any, str] = {int: "INT", float: "FLOAT", str: "NAME"}
