"""Training of many runs on a Slurm cluster, by array jobs of submitit.

The runs are in the cluster's queue: this process may end and be started again. It then follows the jobs that exist.
Runs that are stopped, by their time limit or by preemption, go back to the queue and resume.
"""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dividemix import atomic
from dividemix.errors import InputError
from dividemix.experiments.cluster_task import ClusterTask
from dividemix.experiments.finished import is_finished
from dividemix.experiments.followed import Event, Followed, training_command
from dividemix.experiments.plans import PlannedRun
from dividemix.stored import read_json

_PAUSE = 2.0  # seconds between two looks at the queue
_JOBS = "jobs.json"


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """What each run asks the cluster for."""

    partition: str | None = None
    gpus: int = 0
    cpus: int = 1
    minutes: int = 60  # then the run goes back to the queue, and resumes


def require_cluster() -> None:
    """Raise InputError unless jobs can be submitted from this machine."""
    if shutil.which("sbatch") is None:
        raise InputError(
            "executor is slurm, but there is no sbatch here: start it where Slurm's commands are installed"
        )
    try:
        import submitit  # noqa: F401
    except Exception as error:
        raise InputError("executor is slurm, which needs submitit: pip install submitit") from error


def train_on_cluster(
    runs: Sequence[PlannedRun], folder: Path, cluster: Cluster, *, num_workers: int
) -> Generator[Event, None, None]:
    """Submit the runs that are not in the queue, at most num_workers at a time, follow all, and yield what happens."""
    folder = folder.absolute()
    ids = _known_jobs(folder)
    alive = _states(ids.values())
    new = [run for run in runs if ids.get(run.name) not in alive]
    if new:
        ids |= _submit(new, folder, cluster, num_workers)
        atomic.write_text(folder / _JOBS, json.dumps(ids))
    waiting = {run.name: Followed(run, folder) for run in runs}
    began: set[str] = set()
    missed: set[str] = set()  # not in the queue at the last look: it may be on its way back
    while waiting:
        states = _states(ids[name] for name in waiting)
        for name, followed in tuple(waiting.items()):
            state = states.get(ids[name])
            if name not in began and (state == "RUNNING" or state is None):
                began.add(name)
                yield Event("began", followed.run)
            if name in began:
                yield from followed.news()
            if state is not None:
                missed.discard(name)
            elif name not in missed:
                missed.add(name)
            else:
                del waiting[name]
                failed = not is_finished(followed.run, folder)
                yield Event("ended", followed.run, error=followed.error(1) if failed else None)
        if waiting:
            time.sleep(_PAUSE)


def _submit(runs: Sequence[PlannedRun], folder: Path, cluster: Cluster, num_workers: int) -> dict[str, str]:
    """Submit one array of jobs; returns the job of each run by name."""
    import submitit

    executor = submitit.AutoExecutor(folder=folder / "slurm", cluster="slurm", slurm_max_num_timeout=1000)
    asked: dict[str, Any] = {
        "name": "dividemix",
        "timeout_min": cluster.minutes,
        "cpus_per_task": cluster.cpus,
        "slurm_array_parallelism": num_workers,
        "slurm_additional_parameters": {"requeue": True},
    }
    asked |= {"gpus_per_node": cluster.gpus} if cluster.gpus else {}
    asked |= {"slurm_partition": cluster.partition} if cluster.partition else {}
    executor.update_parameters(**asked)
    python = ["env", f"OMP_NUM_THREADS={cluster.cpus}", sys.executable]
    tasks = [cluster_task(python, run, folder) for run in runs]
    try:
        with executor.batch():
            jobs = [executor.submit(task) for task in tasks]
    except submitit.core.utils.FailedJobError as error:
        raise InputError(f"Slurm refuses the jobs: {' '.join(str(error).split())[:300]}") from error
    return {run.name: str(job.job_id) for run, job in zip(runs, jobs, strict=True)}


def cluster_task(python: Sequence[str], run: PlannedRun, folder: Path) -> ClusterTask:
    """What a job of the cluster does for the run in its directory in the folder."""
    files = str(folder / f"{run.name}.log"), str(folder / run.name / "metrics.jsonl")
    return ClusterTask(training_command(python, run, folder), *files)


def _known_jobs(folder: Path) -> dict[str, str]:
    """The jobs that an earlier call submitted, by the name of their run."""
    path = folder / _JOBS
    return dict(read_json(path, dict[str, str])) if path.is_file() else {}


def _states(ids: Any) -> dict[str, str]:
    """Job -> its state, for those of the jobs that are in the queue."""
    wanted = set(ids)
    if not wanted:
        return {}
    numbers = ",".join(sorted({one.partition("_")[0] for one in wanted}))
    # Slurm exits with 1 if none of the jobs is known any more.
    command = ["squeue", "--array", "--noheader", f"--jobs={numbers}", "--format=%i %T"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode and "Invalid job id" not in answer.stderr:
        raise InputError(f"squeue fails ({answer.stderr.strip()[:200]}): the jobs stay in the queue; start again later")
    rows = (line.split() for line in answer.stdout.splitlines())
    return {row[0]: row[1] for row in rows if len(row) == 2 and row[0] in wanted}
