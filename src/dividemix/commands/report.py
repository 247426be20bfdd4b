"""dividemix report: build the page of a finished run again, for example after an update of dividemix."""

import argparse
from pathlib import Path

HELP = "build the page of a finished run again"


def add(report: argparse.ArgumentParser) -> None:
    """Add the flags of report."""
    report.add_argument("run", metavar="RUN", type=Path, help="a run directory")
    report.add_argument("--data", metavar="DATA", help="the data, if it has moved since the training")
    report.add_argument("--root", metavar="DIR", help="the folder of a built-in set, if it has moved")
    report.add_argument("--device", metavar="NAME", help="where to compute [as the run was trained]")
    trust = "run the code of your own net or method that the run names: only if you trust it"
    report.add_argument("--trust_net", action="store_true", help=trust)
    report.set_defaults(command=_report)


def _report(arguments: argparse.Namespace) -> int:
    from dividemix.planning.job import Job
    from dividemix.report.of_run import write_report
    from dividemix.runs.directory import RunDirectory
    from dividemix.runs.restore import same_job
    from dividemix.runs.run import Run

    job = same_job(RunDirectory(arguments.run), None, trust_net=arguments.trust_net)
    moved = {"data": arguments.data, "root": arguments.root, "device": arguments.device}
    places = {name: value for name, value in moved.items() if value is not None}
    run = Run.load(arguments.run, Job.of(job.values() | places), to_train=False, trust_net=arguments.trust_net)
    path = write_report(run)
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB; open it in a browser")
    return 0
