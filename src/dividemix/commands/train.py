"""dividemix train: plan the runs that the flags ask for, train each in its run directory, print a table."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dividemix.commands.train_flags import EPILOG as EPILOG
from dividemix.commands.train_flags import add_flags
from dividemix.data.builtin import BUILT_IN
from dividemix.engine.processes import started_by_torchrun
from dividemix.engine.reproducible import limit_arithmetic
from dividemix.errors import InputError
from dividemix.foreign import is_foreign, refuse_foreign
from dividemix.methods import find_method
from dividemix.planning.default_method import default_method
from dividemix.planning.job import JOB_FIELDS, Job, known_to, read_settings, refuse_unknown_settings
from dividemix.planning.plan import Plan, make_draft, make_plan, scaled_preset
from dividemix.planning.presets import DEFAULT, DEMO, DEMO_METHODS, preset_for
from dividemix.runs.unfinished import is_run, unfinished_runs
from dividemix.settings import fields_of

HELP = "train on noisy labels"
_DEMO_WORDS = (
    "no DATA is named, so this is a demo: {methods} on 28 x 28 pictures of clothes (Fashion-MNIST), many of whose"
    " labels are made wrong; for your own images: dividemix train FOLDER"
)


def add(train: argparse.ArgumentParser, words: Sequence[str] = ()) -> None:
    """Add the flags of train. `words` are those of the command line: they may name the method whose flags are shown."""
    add_flags(train, words)
    train.set_defaults(command=_train)


@dataclass(frozen=True)
class _Planned:
    """A plan, its run directory, whether it continues an existing run, and whether the user trusts the run's code."""

    plan: Plan
    out: Path
    resumes: bool = False
    trust_net: bool = False


def _train(arguments: argparse.Namespace) -> int:
    _trackers(arguments.log)  # a package that is missing is reported before minutes are spent on reading data
    if started_by_torchrun():
        from dividemix.runs.together import led

        led(lambda: _lead(arguments))
    return _lead(arguments)


def _lead(arguments: argparse.Namespace) -> int:
    """Plan and train in the only process, or in the first of several."""
    planned = _plan(arguments)
    if arguments.print_config:
        for one in planned[:-1]:
            print(f"# first, the same with --method {one.plan.job.method}")
        print(planned[-1].plan.job.to_yaml(), end="")
        return 0
    return _train_all(planned, arguments)


def _plan(arguments: argparse.Namespace) -> list[_Planned]:
    """The plans that the arguments ask for: two for the demo, else one."""
    if arguments.resume and arguments.overwrite:
        raise InputError("--resume continues a run, --overwrite replaces it: give one of them")
    _find_run(arguments)
    given, out = _given(arguments), arguments.out
    if arguments.resume and out is not None and (out / "config.yaml").is_file():
        return [_resumption(out, given, arguments)]
    if arguments.resume and out is not None and "data" not in given and not any(out.glob("*/config.yaml")):
        raise InputError(
            f"{out}: no run to resume; --out must be a run directory, such as runs/photos-robust_history-seed1, or name"
            " DATA to start a run"
        )
    requests = [given]
    if "data" not in given:
        requests = [DEMO | given]
        if "method" not in given:  # settings that only the last method has are dropped for the others
            *others, last = DEMO_METHODS
            requests = [known_to(method, DEMO | given) | {"method": method} for method in others]
            requests.append(DEMO | given | {"method": last})
    return [_planned(request, arguments, several=len(requests) > 1) for request in requests]


def _planned(request: dict[str, Any], arguments: argparse.Namespace, *, several: bool) -> _Planned:
    """The plan for a request, or the run of that name if it is resumed. Data is read only if settings must fit it."""

    def placed(plan: Plan) -> _Planned:
        out = arguments.out
        place = Path("runs") / plan.name if out is None else out / plan.job.method if several else out
        exists = (place / "config.yaml").is_file()
        return _resumption(place, request, arguments) if arguments.resume and exists else _Planned(plan, place)

    draft = make_draft(request, preset=arguments.preset, minutes=arguments.minutes)
    if draft.job.settings.reproducible:
        limit_arithmetic()
    planned = placed(draft)
    if not planned.resumes and not arguments.print_config:
        _check(draft.job)
        _refuse_existing(planned.out, arguments)  # before the data is read, which may take minutes
    if planned.resumes or draft.preset != DEFAULT:
        return planned
    if not arguments.print_config:
        _say_reading(draft.job.data)
    # A file that turns out to have vectors is trained by another method than the draft's, which its name says.
    return placed(make_plan(request, preset=arguments.preset, minutes=arguments.minutes))


def _check(job: Job) -> None:
    """Raise InputError for what is wrong before data is read: that a run exists must not hide a mistake."""
    from dividemix.planning.check_job import check_job

    check_job(job)


def _say_reading(data: str) -> None:
    """Print in a terminal what it waits for: nothing else is printed before the data is read and the speed measured."""
    if sys.stdout.isatty():
        print(f"reading {data}", flush=True)


def _find_run(arguments: argparse.Namespace) -> None:
    """Take a run directory that is given as DATA for --out; with --resume alone, the newest unfinished run for it.

    Without one, --resume alone continues the demo. Raises InputError if there is nothing to resume.
    """
    data = arguments.data
    if data is not None and data not in BUILT_IN and is_run(Path(data)):
        if not arguments.resume:
            raise InputError(f"{data} is a run, not data: dividemix resume {data} continues it")
        if arguments.out not in (None, Path(data)):
            raise InputError(f"--resume continues one run, not both {data} and {arguments.out}: give one of them")
        arguments.data, arguments.out = None, Path(data)
    elif arguments.resume and (data, arguments.out, arguments.config) == (None, None, None):
        demos = [path for path in Path("runs").glob(f"{DEMO['data']}-*") if is_run(path)]
        waiting = unfinished_runs(Path("runs"))
        if not waiting and not demos:
            raise InputError("runs: no unfinished run to resume; name DATA to start one")
        if waiting and waiting[0] not in demos:
            arguments.out = waiting[0]


def _given(arguments: argparse.Namespace) -> dict[str, Any]:
    """The settings that --config and the flags give. The method's settings tell what the text of a flag means.

    Raises:
        InputError: if --config names code that the user does not trust, or a setting that there is not.
    """
    given = {} if arguments.config is None else read_settings(arguments.config)
    flags = {name: value for name in arguments.settings if (value := getattr(arguments, name)) is not None}
    for kind in ("net", "method", "encoder"):
        if kind not in flags:
            refuse_foreign(kind, given.get(kind), arguments.config, trusted=arguments.trust_net)
    asked = given | flags
    data, noise = str(asked.get("data", DEMO["data"])), str(asked.get("noise", "none"))
    preset = arguments.preset or preset_for(data, noise, asked.get("encoder"))
    if "method" not in asked:
        asked["method"] = _stored_method(arguments) or default_method(preset, asked)
    method = JOB_FIELDS["method"].checked(asked["method"])
    try:
        refuse_unknown_settings(given, method)
    except InputError as error:
        raise InputError(f"{arguments.config}: {error}") from None
    fields = {**JOB_FIELDS, **fields_of(find_method(method).settings)}
    return given | {name: fields[name].from_text(value) if name in fields else value for name, value in flags.items()}


def _stored_method(arguments: argparse.Namespace) -> str | None:
    """The method of the run that is resumed; None if there is no run. Raises InputError if it is code to be trusted."""
    path = None if arguments.out is None else arguments.out / "config.yaml"
    if not arguments.resume or path is None or not path.is_file():
        return None
    method = read_settings(path, of_run=True).get("method")
    refuse_foreign("method", method, path, trusted=arguments.trust_net)
    return method


def _resumption(out: Path, given: dict[str, Any], arguments: argparse.Namespace) -> _Planned:
    """The plan of the existing run in `out`. Loading it checks that the settings given agree with its own."""
    stored = read_settings(out / "config.yaml", of_run=True)
    trusts = arguments.trust_net or all(
        given.get(kind) == stored[kind] for kind in ("net", "method", "encoder") if is_foreign(str(stored.get(kind)))
    )
    for kind in ("net", "method", "encoder"):
        refuse_foreign(kind, stored.get(kind), out / "config.yaml", trusted=trusts)
    preset, asked = arguments.preset or "", stored
    if preset not in ("", DEFAULT):
        values, _ = scaled_preset(preset, stored["method"], {"epochs": stored["epochs"]} | given)
        asked = stored | values
    return _Planned(Plan(Job.of(asked | given), preset), out, resumes=True, trust_net=trusts)


def _trackers(log: str | None) -> tuple[str, ...]:
    """The trackers that --log names. Raises InputError if one cannot be used."""
    if log is None:
        return ()
    from dividemix.runs.tracking import parse_log

    return parse_log(log)


def _refuse_existing(out: Path, arguments: argparse.Namespace) -> None:
    from dividemix.runs.creation import refuse_existing

    refuse_existing(out, overwrite=arguments.overwrite)


def _train_all(planned: list[_Planned], arguments: argparse.Namespace) -> int:
    """Train each plan in its directory, then print the table and where the results are."""
    from dividemix.display import say
    from dividemix.runs.run import Run
    from dividemix.session import show_results, train_shown

    for one in planned:  # check all of them before the first is trained
        if not one.resumes:
            _refuse_existing(one.out, arguments)
    outs, methods = [one.out for one in planned], " and ".join(one.plan.job.method for one in planned)
    while planned:
        is_first, one = len(planned) == len(outs), planned.pop(0)
        plan, out = one.plan, one.out
        if one.resumes:
            run = Run.load(out, plan.job, trust_net=one.trust_net)
        else:
            replaces = arguments.overwrite
            if plan.source is None:
                _say_reading(plan.job.data)
            run = Run.create(
                out, plan.job, overwrite=replaces, source=plan.source, choices=plan.choices, budget=plan.budget
            )
            if is_first and arguments.data is None and plan.job.data == DEMO["data"]:
                say(_DEMO_WORDS.format(methods=methods))
            elif not arguments.preset and is_first and plan.preset != DEFAULT:
                say(f"settings that you do not give are those of the preset {plan.preset} (see dividemix presets)")
        del one, plan  # the run has its own copy of the data: what was read may be large
        resume = "" if len(outs) == 1 else "the same command and --resume"
        if code := train_shown(run, resume=resume, log=_trackers(arguments.log)):
            return code
    show_results(outs)
    return 0
