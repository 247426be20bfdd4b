"""The logs of a run: the numbers of its epochs under the names of the field, by stand-ins and by the real packages."""

import errno
import importlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from injected import OPENING, injected, refusing
from toys import epoch_row, settled, toy_job, trained
from workshop import fail

from dividemix.cli import main
from dividemix.errors import InputError
from dividemix.runs import tracking
from dividemix.runs.run import Run

NAMES = {"train/loss", "train/lr", "test/acc", "time/epoch"}


class Kept:
    """A stand-in for a tracker: it keeps what it gets, by epoch."""

    logs: dict[str, dict[int, Mapping[str, float]]] = {}  # noqa: RUF012 (one log for all)
    closed = 0
    fails_at: int | None = None

    def __init__(self, run: Run, known: str | None):
        self.id = known or f"new-{run.directory.path.name}"

    def log(self, epoch: int, values: Mapping[str, float]) -> None:
        if epoch == Kept.fails_at:
            raise OSError("no space left")
        Kept.logs.setdefault(self.id, {})[epoch] = values

    def close(self) -> None:
        Kept.closed += 1


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> type[Kept]:
    """Kept in place of mlflow."""
    monkeypatch.setattr(Kept, "logs", {})
    monkeypatch.setattr(Kept, "closed", 0)
    monkeypatch.setitem(tracking._TRACKERS, "mlflow", Kept)
    monkeypatch.setitem(sys.modules, "mlflow", ModuleType("mlflow"))
    return Kept


def test_an_epoch_has_the_names_of_the_field() -> None:
    row = epoch_row(
        2,
        losses={"loss_x": [1.0, 3.0], "loss_u": [0.5, 0.5]},
        figures={"noise_rate": 0.25, "lambda_u": 7.0},
        test_acc=80.0,
        val_acc=60.0,
        clean_auc=[0.5, 1.0],
        num_labeled=[30, 40],
        seconds=2.5,
    )
    assert tracking.values_of(row) == {
        **{"train/loss_x": 2.0, "train/loss_u": 0.5, "train/loss": 2.0, "val/acc": 60.0, "test/acc": 80.0},
        **{"noise/auc": 0.75, "noise/labels_kept": 35.0, "noise/rate": 0.25, "method/lambda_u": 7.0, "time/epoch": 2.5},
    }
    assert tracking.values_of(epoch_row(1)) == {"time/epoch": 0.0}


def test_a_resumed_run_continues_the_same_log_and_has_the_same_bits(tmp_path: Path, kept: type[Kept]) -> None:
    job = toy_job(tmp_path)
    trained(tmp_path / "straight", job)
    run = Run.create(tmp_path / "run", job)
    with tracking.tracked(run, ("mlflow",)) as epochs:
        next(epochs)
    assert kept.closed == 1
    assert json.loads((tmp_path / "run" / "log.json").read_text()) == {"mlflow": "new-run"}
    with tracking.tracked(Run.load(tmp_path / "run")) as epochs:
        for _ in epochs:
            pass
    (log,) = kept.logs.values()
    assert list(log) == [1, 2, 3, 4]
    assert all(log[epoch].keys() >= NAMES for epoch in log)
    assert log[1]["train/lr"] == job.settings.lr
    equal = settled(tmp_path / "straight")
    assert {name: value for name, value in settled(tmp_path / "run").items() if name in equal} == {
        name: value for name, value in equal.items() if name != "report.html"
    }


def test_a_log_that_fails_costs_a_warning_and_not_the_training(
    tmp_path: Path, kept: type[Kept], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "fails_at", 2)
    run = Run.create(tmp_path / "run", toy_job(tmp_path))
    said = "mlflow failed and is not logged to any more: no space left"
    with pytest.warns(UserWarning, match=said), tracking.tracked(run, ("mlflow",)) as epochs:
        assert len(list(epochs)) == 4
    assert list(kept.logs["new-run"]) == [1]
    assert run.finished


@pytest.mark.usefixtures("workshop")
def test_mistakes_are_one_line_before_the_data_is_read(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "--log is comet: it must be one or more of tensorboard, mlflow, wandb" in fail(
        capsys, ["train", "no.npz", "--log", "comet"]
    )
    monkeypatch.setitem(sys.modules, "wandb", None)
    assert "pip install wandb" in fail(capsys, ["train", "no.npz", "--log", "wandb"])


@pytest.mark.usefixtures("workshop")
def test_the_command_line_logs(tmp_path: Path, kept: type[Kept]) -> None:
    job = toy_job(tmp_path, epochs=2, warmup_epochs=1)
    assert main(["train", *job.flags(), "--out", "run", "--log", "mlflow"]) == 0
    assert main(["resume", "run", "--extend", "1"]) == 0
    assert list(kept.logs["new-run"]) == [1, 2, 3]


def test_a_damaged_record_is_a_new_log(tmp_path: Path, kept: type[Kept]) -> None:
    run = Run.create(tmp_path / "run", toy_job(tmp_path, epochs=2, warmup_epochs=1))
    (tmp_path / "run" / "log.json").write_text("{")
    warned = pytest.warns(
        UserWarning, match=r"log\.json: damaged .*: trackers that it names are not logged to any more"
    )
    with warned, tracking.tracked(run, ("mlflow",)) as epochs:
        assert len(list(epochs)) == 2
    assert json.loads((tmp_path / "run" / "log.json").read_text()) == {"mlflow": "new-run"}


def test_a_record_that_is_refused_is_not_replaced(tmp_path: Path, kept: type[Kept]) -> None:
    """The ids in it were lost, and the resumed run had another log."""
    run = Run.create(tmp_path / "run", toy_job(tmp_path, epochs=2, warmup_epochs=1))
    record = tmp_path / "run" / "log.json"
    record.write_text('{"mlflow": "old"}')
    refused = pytest.raises(InputError, match="log\\.json: cannot be read: Too many open files")
    with refused, injected(refusing(record, 0, errno.EMFILE, OPENING)), tracking.tracked(run, ("mlflow",)):
        pass
    assert record.read_text() == '{"mlflow": "old"}'
    with tracking.tracked(run) as epochs:
        assert len(list(epochs)) == 2
    assert list(kept.logs["old"]) == [1, 2]


# The real packages, where they are installed.


def logged(tmp_path: Path, name: str) -> Run:
    """A run that was stopped after two of four epochs and resumed."""
    pytest.importorskip(name, reason=f"needs {name}")
    run = Run.create(tmp_path / "run", toy_job(tmp_path))
    with tracking.tracked(run, tracking.parse_log(name)) as epochs:
        next(epochs), next(epochs)
    again = Run.load(tmp_path / "run")
    with tracking.tracked(again) as epochs:
        assert len(list(epochs)) == 2
    return again


def accuracies(run: Run) -> list[Any]:
    return [row["test_acc"] for row in run.rows]


@pytest.mark.slow
def test_tensorboard_reads_the_epochs(tmp_path: Path) -> None:
    run = logged(tmp_path, "tensorboard")
    module = importlib.import_module("tensorboard.backend.event_processing.event_accumulator")
    events = module.EventAccumulator(str(tmp_path / "run" / "tensorboard")).Reload()
    scalars = events.Scalars("test/acc")
    assert [one.step for one in scalars] == [1, 2, 3, 4]
    assert [one.value for one in scalars] == pytest.approx(accuracies(run))


@pytest.mark.slow
def test_mlflow_reads_the_epochs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    run = logged(tmp_path, "mlflow")
    client = importlib.import_module("mlflow.tracking").MlflowClient((tmp_path / "mlruns").as_uri())
    (experiment,) = [one for one in client.search_experiments() if one.name == "dividemix"]
    (found,) = client.search_runs([experiment.experiment_id])
    history = client.get_metric_history(found.info.run_id, "test/acc")
    assert [one.step for one in history] == [1, 2, 3, 4]
    assert [one.value for one in history] == pytest.approx(accuracies(run))
    assert found.data.params["method"] == "dividemix"
    assert found.info.status == "FINISHED"


@pytest.mark.slow
def test_wandb_writes_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WANDB_MODE", raising=False)
    logged(tmp_path, "wandb")
    offline = sorted((tmp_path / "run" / "wandb").glob("offline-run-*"))
    ids = {folder.name.rpartition("-")[2] for folder in offline}
    assert len(offline) == 2  # before and after the stop
    assert ids == set(json.loads((tmp_path / "run" / "log.json").read_text()).values())


def test_an_unknown_tracker_is_refused() -> None:
    with pytest.raises(InputError, match="must be one or more of"):
        tracking.parse_log("tensorboards")
    assert tracking.parse_log(None) == tracking.parse_log(" , ") == ()
