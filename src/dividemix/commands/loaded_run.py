"""The flags that name a finished run and where its data is now, and the run that they load."""

import argparse
from typing import TYPE_CHECKING

from dividemix.runs.unfinished import named_run, require_run

if TYPE_CHECKING:
    from dividemix.runs.run import Run


def add_run(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("run", metavar="RUN", type=named_run, help="a run directory")
    parser.add_argument("--data", metavar="DATA", help="the data, if it has moved since the training")
    parser.add_argument("--root", metavar="DIR", help="the folder of a built-in set, if it has moved")
    parser.add_argument("--device", metavar="NAME", help="where to compute [as the run was trained]")
    trust = "run the code of your own net or method that the run names: only if you trust it"
    parser.add_argument("--trust_net", action="store_true", help=trust)


def load_run(arguments: argparse.Namespace) -> "Run":
    """The run that the flags name, not to be trained. Raises InputError if there is none, or it does not fit."""
    require_run(arguments.run)

    from dividemix.planning.job import Job
    from dividemix.runs.directory import RunDirectory
    from dividemix.runs.restore import same_job
    from dividemix.runs.run import Run

    job = same_job(RunDirectory(arguments.run), None, trust_net=arguments.trust_net)
    moved = {"data": arguments.data, "root": arguments.root, "device": arguments.device}
    places = {name: value for name, value in moved.items() if value is not None}
    return Run.load(arguments.run, Job.of(job.values() | places), to_train=False, trust_net=arguments.trust_net)
