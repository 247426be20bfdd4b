"""dividemix resume: continue a run that was stopped, or give more epochs to a finished one."""

import argparse
from pathlib import Path

from dividemix.engine.processes import started_by_torchrun
from dividemix.errors import InputError, counted
from dividemix.meant import or_meant_path
from dividemix.methods.method import MethodSettings
from dividemix.planning.job import JOB_FIELDS, PLACES, Job
from dividemix.runs.unfinished import is_run, unfinished_runs
from dividemix.settings import fields_of

HELP = "continue a run that was stopped, or extend a finished one"
EPILOG = """\
Only where things are and what computes may change: the flags above. With --extend, finished epochs stay as they are,
and the added ones follow the schedule of the longer training."""
_FIELDS = {name: field for name, field in {**JOB_FIELDS, **fields_of(MethodSettings)}.items() if name in PLACES}


def add(resume: argparse.ArgumentParser) -> None:
    """Add the flags of resume."""
    run = "a run directory, or its name in --runs [the newest unfinished one]"
    resume.add_argument("run", metavar="RUN", nargs="?", type=Path, help=run)
    resume.add_argument("--extend", metavar="EPOCHS", type=int, help="add this number of epochs to a finished run")
    resume.add_argument("--runs", metavar="DIR", type=Path, default=Path("runs"), help="where to look for runs [runs]")
    for name, field in _FIELDS.items():
        resume.add_argument(f"--{name}", metavar=field.metavar, help=f"{field.doc} [as the run has it]")
    resume.add_argument(
        "--log", metavar="NAMES", help="log to more programs; the logs that the run has already continue"
    )
    trust = "allow the run to use the code that it names (net, method or encoder): only if you trust it"
    resume.add_argument("--trust_net", action="store_true", help=trust)
    resume.set_defaults(command=_resume)


def _resume(arguments: argparse.Namespace) -> int:
    if started_by_torchrun():
        from dividemix.runs.together import led

        led(lambda: _lead(arguments))
    return _lead(arguments)


def _lead(arguments: argparse.Namespace) -> int:
    """Resume in the only process, or in the first of several."""
    path = _named(arguments.run, arguments.runs) if arguments.run else _newest(arguments.runs, arguments.extend)

    from dividemix.display import say
    from dividemix.runs.directory import RunDirectory
    from dividemix.runs.extension import extension_words
    from dividemix.runs.run import Run
    from dividemix.runs.tracking import parse_log
    from dividemix.session import show_results, train_shown

    trackers = parse_log(arguments.log)
    job = RunDirectory(path).read_job(trust_net=arguments.trust_net)
    flags = {name: getattr(arguments, name) for name in _FIELDS}
    moved = {name: _FIELDS[name].from_text(value) for name, value in flags.items() if value is not None}
    run = Run.load(path, Job.of(job.values() | moved), trust_net=arguments.trust_net)
    if arguments.extend is not None:
        before = run.job
        run.extend(arguments.extend)
        say(f"{path}: {extension_words(before, run.job)}")
    elif run.finished and (path / "summary.json").is_file():
        say(f"{path}: finished after {counted(run.state.epoch, 'epoch')}; --extend EPOCHS adds more")
    if code := train_shown(run, log=trackers):
        return code
    show_results([path])
    return 0


def _named(run: Path, folder: Path) -> Path:
    """The directory of the run that is named. Raises InputError if there is none."""
    for path in (run, folder / run):
        if is_run(path):
            return path
    known = ", ".join(path.name for path in unfinished_runs(folder)[:3])
    waiting = f"unfinished runs in {folder}: {known}" if known else "give the directory that dividemix train wrote"
    raise InputError(f"{run}: no run to resume: {or_meant_path(run, waiting)}")


def _newest(folder: Path, extend: int | None) -> Path:
    """The newest run that is not finished. Raises InputError if there is none."""
    waiting = unfinished_runs(folder)
    if extend is not None:
        raise InputError("--extend needs the finished run: dividemix resume RUN --extend EPOCHS")
    if not waiting:
        raise InputError(f"{folder}: no unfinished run; to extend a finished one: dividemix resume RUN --extend N")
    if others := [path.name for path in waiting[1:]]:
        print(f"{waiting[0]}: the newest of {len(waiting)} unfinished runs; the others: {', '.join(others[:5])}")
    return waiting[0]
