"""The epochs of a run in TensorBoard, MLflow or Weights & Biases: offline, each package imported when it is named.

log.json in the run directory says which trackers a run has and under which id, so that a resumed run continues the same
log.
"""

import importlib
import os
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from dividemix.errors import InputError, is_refusal
from dividemix.judging.records import EpochRow, main_loss
from dividemix.runs.run import Run
from dividemix.stored import read_json

_FILE = "log.json"
_PACKAGES = {  # by tracker: the module that it needs, and what installs it
    "tensorboard": ("tensorboard", "tensorboard"),
    "mlflow": ("mlflow", "mlflow-skinny"),
    "wandb": ("wandb", "wandb"),
}


class Tracker(Protocol):
    """A log of numbers by name and epoch, which a program shows as curves. `id` finds it again."""

    id: str

    def log(self, epoch: int, values: Mapping[str, float]) -> None:
        """Add the values of an epoch."""

    def close(self) -> None:
        """Write everything."""


def parse_log(text: str | None) -> tuple[str, ...]:
    """The trackers in a text such as "tensorboard,mlflow". Raises InputError if one is unknown or not installed."""
    names = tuple(dict.fromkeys(name.strip() for name in (text or "").split(",") if name.strip()))
    for name in names:
        if name not in _PACKAGES:
            raise InputError(f"log is {text}: it must be one or more of {', '.join(_PACKAGES)}, with commas between")
        module, package = _PACKAGES[name]
        try:
            importlib.import_module(module)
        except Exception as error:  # a broken package may raise anything
            reason = " ".join(str(error).split())[:100]
            raise InputError(f"log is {text}: {name} cannot be imported ({reason}): pip install {package}") from error
    return names


@contextmanager
def tracked(run: Run, names: tuple[str, ...] = ()) -> Iterator[Generator[EpochRow, None, None]]:
    """The remaining epochs of the run as `run.epochs()` gives them, each also logged by the trackers that are named.

    A resumed run has those of log.json, too. A tracker that fails is skipped from then on, with a warning.
    """
    ids, trackers = _known(run.directory.path), dict[str, Tracker]()
    for name in () if run.finished else dict.fromkeys((*names, *ids)):
        _try(name, partial(_begin, trackers, name, run, ids.get(name)))
    if trackers:
        run.directory.write_json(_FILE, ids | {name: tracker.id for name, tracker in trackers.items()})
    with closing(run.epochs()) as epochs:
        try:
            yield _logged(epochs, trackers, run) if trackers else epochs
        finally:
            for name, tracker in trackers.items():
                _try(name, tracker.close)


def _begin(trackers: dict[str, Tracker], name: str, run: Run, known: str | None) -> None:
    trackers[name] = _TRACKERS[name](run, known)


def _known(path: Path) -> dict[str, str]:
    """The trackers in log.json, with the id of each; none without that file, or if it is damaged, with a warning.

    Raises InputError if the system refuses to read it: the ids would be replaced.
    """
    try:
        known = read_json(path / _FILE, dict[str, str]) if (path / _FILE).is_file() else {}
    except InputError as error:  # no result depends on it
        if is_refusal(error.__cause__):
            raise
        warnings.warn(f"{error}: trackers that it names are not logged to any more", stacklevel=2)
        return {}
    return {name: value for name, value in known.items() if name in _PACKAGES}


def _logged(
    epochs: Generator[EpochRow, None, None], trackers: dict[str, Tracker], run: Run
) -> Generator[EpochRow, None, None]:
    for row in epochs:
        before = row["epoch"] - 1
        values = values_of(row) | {"train/lr": run.job.settings.in_force(before).learning_rate(before)}
        for name, tracker in list(trackers.items()):
            if not _try(name, partial(tracker.log, row["epoch"], values)):
                del trackers[name]
        yield row


def _try(name: str, act: Callable[[], None]) -> bool:
    """Whether it worked. A log that cannot be written must not cost the training."""
    try:
        act()
    except Exception as error:
        warnings.warn(f"{name} failed and is not logged to any more: {str(error)[:200]}", stacklevel=2)
        return False
    return True


def values_of(row: EpochRow) -> dict[str, float]:
    """The numbers of an epoch under the names of the field: train/loss, val/acc, test/acc, noise/auc."""
    values = {f"train/{name}": sum(each) / len(each) for name, each in row["losses"].items() if each}
    found = {
        "train/loss": main_loss(row),
        "val/acc": row.get("val_acc"),
        "test/acc": row["test_acc"],
        "test/top5": row.get("test_top5"),
        "noise/auc": _mean(row.get("clean_auc") or []),
        "noise/labels_kept": _mean(row.get("num_labeled", [])),
        "time/epoch": row["seconds"],
    }
    values |= {name: float(value) for name, value in found.items() if value is not None}
    rate = row["figures"].get("noise_rate")
    values |= {f"method/{name}": value for name, value in row["figures"].items() if name != "noise_rate"}
    return values if rate is None else values | {"noise/rate": rate}


def _mean(values: list[Any]) -> float | None:
    return sum(values) / len(values) if values else None


class _TensorBoard:
    """Event files in RUN/tensorboard; a resumed run hides what was logged after its last checkpoint."""

    def __init__(self, run: Run, known: str | None):
        from torch.utils.tensorboard import SummaryWriter

        self.id = "tensorboard"
        purge = run.state.epoch + 1 if known else None
        self._writer = SummaryWriter(str(run.directory.path / self.id), purge_step=purge)

    def log(self, epoch: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, epoch)
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


class _MLflow:
    """A run in the store that MLFLOW_TRACKING_URI names, else in the folder mlruns next to the run directory."""

    def __init__(self, run: Run, known: str | None):
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")  # newer versions ask for it
        from mlflow.tracking import MlflowClient

        path = run.directory.path
        self._client = MlflowClient(
            os.environ.get("MLFLOW_TRACKING_URI") or (path.resolve().parent / "mlruns").as_uri()
        )
        self.id = known or self._create(run)

    def _create(self, run: Run) -> str:
        experiment = self._client.get_experiment_by_name("dividemix")
        number = self._client.create_experiment("dividemix") if experiment is None else experiment.experiment_id
        created = self._client.create_run(number, run_name=run.directory.path.name).info.run_id
        for name, value in run.job.values().items():
            self._client.log_param(created, name, str(value)[:250])
        return str(created)

    def log(self, epoch: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._client.log_metric(self.id, name, value, step=epoch)

    def close(self) -> None:
        self._client.set_terminated(self.id)


class _Wandb:
    """A run of the project dividemix, offline unless WANDB_MODE says otherwise, with its files in the run directory."""

    def __init__(self, run: Run, known: str | None):
        import wandb

        mode: Any = os.environ.get("WANDB_MODE", "offline")
        path = run.directory.path
        about = {"project": os.environ.get("WANDB_PROJECT", "dividemix"), "name": path.name, "config": run.job.values()}
        self._run = wandb.init(**about, id=known, resume="allow", mode=mode, dir=str(path))
        self.id = str(self._run.id)

    def log(self, epoch: int, values: Mapping[str, float]) -> None:
        self._run.log(dict(values), step=epoch)

    def close(self) -> None:
        self._run.finish()


_TRACKERS: dict[str, Callable[[Run, str | None], Tracker]] = {
    "tensorboard": _TensorBoard,
    "mlflow": _MLflow,
    "wandb": _Wandb,
}
