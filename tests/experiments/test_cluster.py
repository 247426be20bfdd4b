"""Runs on a cluster: with a queue that the test makes and, where Slurm runs, with Slurm itself.

`tools/slurm_for_tests.sh` starts a Slurm of one machine, as root, from Debian's packages slurm-wlm and munge.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from workshop import fail

from dividemix.errors import InputError
from dividemix.experiments import cluster
from dividemix.experiments.cluster import Cluster, cluster_task, train_on_cluster
from dividemix.experiments.cluster_task import ClusterTask
from dividemix.experiments.followed import Event
from dividemix.experiments.plans import PlannedRun
from dividemix.experiments.pool import train_all
from dividemix.experiments.sweep import make_sweep

_SMALL = {
    **{"data": "fashion", "noise": "symmetric:0.4", "method": "cross_entropy", "limit_train": 60, "epochs": 2},
    **{"net": "small_cnn", "net_width": 1, "batch_size": 16},
}


def _runs() -> list[PlannedRun]:
    return [run for one in make_sweep(_SMALL, {"lr": [0.01, 0.02]}, [1]) for run in one.runs]


class _Queue:
    """A cluster that runs each task at the first look at it, and forgets it at the next."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.submitted: list[str] = []
        self._tasks: dict[str, tuple[PlannedRun, Path]] = {}
        self._looked: set[str] = set()
        monkeypatch.setattr(cluster, "_submit", self._submit)
        monkeypatch.setattr(cluster, "_states", self._states)
        monkeypatch.setattr(cluster, "_PAUSE", 0.0)

    def _submit(self, runs: Iterable[PlannedRun], folder: Path, asked: Cluster, num_workers: int) -> dict[str, str]:
        ids = {run.name: f"7_{len(self.submitted) + i}" for i, run in enumerate(runs)}
        self.submitted += ids
        self._tasks |= {ids[run.name]: (run, folder) for run in runs}
        return ids

    def _states(self, ids: Iterable[str]) -> dict[str, str]:
        states = {}
        for one in ids:
            if one in self._tasks and one not in self._looked:
                self._looked.add(one)
                run, folder = self._tasks[one]
                cluster_task([sys.executable], run, folder)()
                states[one] = "RUNNING"
        return states


def _kinds(events: Iterable[Event]) -> list[tuple[str, str]]:
    return [(event.run.name, event.kind) for event in events]


@pytest.mark.slow
def test_runs_are_submitted_followed_and_not_submitted_twice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    queue, runs = _Queue(monkeypatch), _runs()
    kinds = _kinds(train_on_cluster(runs, tmp_path, Cluster(), num_workers=2))
    for run in runs:
        assert [kind for name, kind in kinds if name == run.name] == ["began", "epoch", "epoch", "ended"]
    assert json.loads((tmp_path / "jobs.json").read_text()) == {runs[0].name: "7_0", runs[1].name: "7_1"}
    # A shell that comes back finds the jobs in the queue, and then no longer.
    looks = iter(["PENDING", "PENDING", "RUNNING"])
    monkeypatch.setattr(cluster, "_states", lambda ids: dict.fromkeys(ids, state) if (state := next(looks, "")) else {})
    kinds = _kinds(train_on_cluster(runs, tmp_path, Cluster(), num_workers=2))
    assert [kind for _, kind in kinds].count("ended") == 2
    assert queue.submitted == [run.name for run in runs]


def test_a_job_that_fails_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (run, _), asked = _runs(), Cluster()
    monkeypatch.setattr(cluster, "_submit", lambda *_: {run.name: "3_0"})
    monkeypatch.setattr(cluster, "_states", lambda _: {})
    monkeypatch.setattr(cluster, "_PAUSE", 0.0)
    (tmp_path / f"{run.name}.log").write_text("dividemix: error: fashion: no such data\n")
    *_, last = train_on_cluster([run], tmp_path, asked, num_workers=1)
    assert last.error == "ended with exit code 1: fashion: no such data"


def test_a_task_that_is_stopped_ends_its_command_and_can_be_repeated(tmp_path: Path) -> None:
    submitit = pytest.importorskip("submitit")
    task = _task("print('trained')", tmp_path)
    task()
    again = task.checkpoint()
    assert isinstance(again, submitit.helpers.DelayedSubmission)
    again.function()
    assert (tmp_path / "log").read_text().split() == ["trained", "trained"]
    with pytest.raises(RuntimeError, match="exit code 3"):
        _task("raise SystemExit(3)", tmp_path)()


def test_a_task_that_is_stopped_again_and_again_before_its_first_epoch_gives_up(tmp_path: Path) -> None:
    """A time limit that is shorter than an epoch would fill the queue forever."""
    pytest.importorskip("submitit")
    task = _task("pass", tmp_path)
    for metrics in ("", "", "an epoch", "an epoch", "an epoch"):
        task()
        (tmp_path / "metrics").write_text(metrics)
        task = task.checkpoint().function
    task()
    assert task.checkpoint() is None
    assert "3 times no epoch was finished in time: give more --minutes" in (tmp_path / "log").read_text()


def _task(program: str, folder: Path) -> ClusterTask:
    return ClusterTask([sys.executable, "-c", program], str(folder / "log"), str(folder / "metrics"))


def test_without_slurm_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(InputError, match="no sbatch here"):
        cluster.require_cluster()


@pytest.mark.usefixtures("workshop")
def test_flags_of_a_cluster_need_a_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert "gpus is for a cluster" in fail(capsys, ["sweep", "fashion", "--vary", "lr=0.1", "--gpus", "1"])


def _slurm_runs() -> bool:
    if shutil.which("sinfo") is None:
        return False
    try:
        return subprocess.run(["sinfo"], capture_output=True, check=False, timeout=20).returncode == 0
    except subprocess.TimeoutExpired:
        return False


@pytest.mark.slow
def test_a_sweep_on_slurm_equals_one_on_this_machine(tmp_path: Path) -> None:
    _require_slurm()
    runs = _runs()
    events = _kinds(train_on_cluster(runs, tmp_path / "slurm", Cluster(minutes=5), num_workers=2))
    assert sum(kind == "ended" for _, kind in events) == 2
    _assert_equal_to_local(runs, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_run_that_slurm_puts_back_into_the_queue_resumes(tmp_path: Path) -> None:
    _require_slurm()
    run, folder = make_sweep({**_SMALL, "epochs": 12}, {"lr": [0.01]}, [1])[0].runs[0], tmp_path / "slurm"
    trained = []
    for event in train_on_cluster([run], folder, Cluster(minutes=10), num_workers=1):
        assert event.error is None
        if event.row is not None:
            trained.append(event.row["epoch"])
        if trained == [1]:
            job = json.loads((folder / "jobs.json").read_text())[run.name]
            subprocess.run(["scontrol", "requeue", job], check=True)  # Slurm starts it again after two minutes
    log = (folder / f"{run.name}.log").read_text()
    assert "stopped by SIGTERM" in log
    assert "resumed after epoch" in log
    _assert_equal_to_local([run], tmp_path)


def _require_slurm() -> None:
    pytest.importorskip("submitit")
    if not _slurm_runs():
        pytest.skip("no Slurm answers here: tools/slurm_for_tests.sh starts one")


def _assert_equal_to_local(runs: list[PlannedRun], folder: Path) -> None:
    """Train the runs of folder/slurm here, too, and compare the results."""
    list(train_all(runs, folder / "local", num_workers=len(runs), num_threads=1))
    for run in runs:
        files = [folder / place / run.name / "label_issues.csv" for place in ("slurm", "local")]
        assert files[0].read_bytes() == files[1].read_bytes()
