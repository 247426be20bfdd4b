"""The flags that choose where many runs are trained: on this machine, or on a Slurm cluster."""

import argparse
from typing import TYPE_CHECKING

from dividemix.errors import InputError

if TYPE_CHECKING:
    from dividemix.experiments.cluster import Cluster

_OF_SLURM = {"partition": None, "gpus": 0, "cpus": 1, "minutes": 60}


def add_executor(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    where = "local: on this machine; slurm: as jobs of a Slurm cluster (needs submitit) [local]"
    parser.add_argument("--executor", choices=("local", "slurm"), default="local", help=where)
    slurm = parser.add_argument_group("with --executor slurm, for each run")
    slurm.add_argument("--partition", metavar="NAME", help="partition of the cluster [its default]")
    slurm.add_argument("--gpus", metavar="N", type=int, help="number of GPUs [0]")
    slurm.add_argument("--cpus", metavar="N", type=int, help="number of cores [1]")
    minutes = "time limit of a job; an unfinished run goes back to the queue and resumes [60]"
    slurm.add_argument("--minutes", metavar="M", type=int, help=minutes)


def chosen_cluster(arguments: argparse.Namespace) -> "Cluster | None":
    """The cluster that the flags ask for; None: this machine. Raises InputError if a flag does not fit."""
    given = {name: value for name in _OF_SLURM if (value := getattr(arguments, name)) is not None}
    if arguments.executor == "local":
        if given:
            raise InputError(f"{next(iter(given))} is for a cluster: add --executor slurm, or leave it out")
        return None
    for name, low in (("gpus", 0), ("cpus", 1), ("minutes", 5)):
        if given.get(name, low) < low:
            raise InputError(f"{name} is {given[name]}: it must be an integer >= {low}")

    from dividemix.experiments.cluster import Cluster

    return Cluster(**{**_OF_SLURM, **given})
