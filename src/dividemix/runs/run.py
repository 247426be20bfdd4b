"""A run: create or resume it, train it epoch by epoch, evaluate it."""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from dividemix import atomic
from dividemix.algorithm.ensemble import predict_probs
from dividemix.data.source import Source
from dividemix.engine import processes
from dividemix.engine.checkpoint import remove_strays
from dividemix.engine.memory import keep_freed_memory
from dividemix.engine.state import State, net_tensors
from dividemix.engine.writer import Writer
from dividemix.errors import InputError
from dividemix.judging.label_issues import LabelIssues
from dividemix.judging.metrics import metrics_row
from dividemix.judging.records import EpochRow, RunSummary
from dividemix.judging.selection import best_epoch
from dividemix.lock import exclusive
from dividemix.methods import find_method
from dividemix.methods.loop import train_one
from dividemix.model.model import Model
from dividemix.nets.weights import WeightsReport
from dividemix.planning.budget import Budget
from dividemix.planning.choices import Choice
from dividemix.planning.job import Job
from dividemix.planning.material import Material
from dividemix.planning.prepare import prepare
from dividemix.planning.starting_weights import StartingWeights
from dividemix.runs.checkpoints import copies, repair_best, save_best, save_last
from dividemix.runs.creation import create_directory, refuse_existing
from dividemix.runs.directory import RunDirectory, environment
from dividemix.runs.extension import longer, longer_job
from dividemix.runs.judged import judge_labels
from dividemix.runs.kept import kept_model, kept_nets, load_best
from dividemix.runs.replan import replan
from dividemix.runs.restore import require_unchanged, restore, same_job
from dividemix.runs.results import summarise_run, write_results
from dividemix.runs.shown import flat_row, run_html, run_words
from dividemix.runs.start import write_start
from dividemix.settings import checked_path

Place = Path | str  # the path of a run directory


@dataclass(repr=False)
class Run:
    """A run on disk and in memory.

    `rows` are its epochs so far, as in metrics.jsonl; `saved_epoch` is that of the last checkpoint on disk. The epoch
    to keep is the best on validation images or held-out samples (judging/selection.py); without them, the last.
    """

    job: Job
    directory: RunDirectory
    material: Material
    state: State
    rows: list[EpochRow]
    saved_epoch: int
    choices: list[Choice]
    weights: WeightsReport | None = None  # what a new run took from the file of weights
    estimate: float | None = None  # seconds that all epochs will take, as foreseen before the first
    budget: Budget | None = None  # the time limit of a run that is not resumed: its plan follows the clock
    page_seconds: float = 0.0  # that the page takes after training, as foreseen by who writes it; the budget counts it
    extended_after: list[int] = field(default_factory=list)  # the epochs at which the finished run was given more
    keeps_files: bool = True  # False: only its label issues are asked for, so no epoch, model, table or page is written
    best: tuple[int, dict[str, Tensor]] | None = None  # the best epoch trained by this object, and its nets' tensors
    _model: tuple[int, Model] | None = None  # of the kept epoch, with the number of epochs trained
    _issues: tuple[int, LabelIssues] | None = None  # as _model
    _summary: tuple[int, RunSummary] | None = None  # as _model

    def __repr__(self) -> str:
        return run_words(self)

    def _repr_html_(self) -> str:
        """The summary as a notebook shows it."""
        return run_html(self)

    @property
    def classes(self) -> tuple[str | int, ...]:
        """The classes, in the type of the given labels and in the order of the columns of `predict_proba`."""
        return self.material.class_labels

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """The epochs so far, one flat record each, as the lines of metrics.csv: pandas.DataFrame(run.metrics)."""
        return [flat_row(row) for row in self.rows]

    @classmethod
    def create(
        cls,
        path: Path,
        job: Job,
        *,
        overwrite: bool = False,
        source: Source | None = None,
        choices: Sequence[Choice] = (),
        keep_data: bool = False,
        numbered: bool = False,
        budget: Budget | None = None,
    ) -> "Run":
        """A new run, on disk before its first epoch, on the job's data, which is read unless it is `source`.

        `choices` are settings of the job that were chosen for the user, for the summary and the report. `keep_data`
        copies the source into the directory, for data that is stored nowhere else. `numbered` adds a number to a path
        that is taken. With a `budget`, training changes the number of epochs so that the run ends in time. Raises
        InputError if the job is wrong, or the path exists.
        """
        if not numbered:
            refuse_existing(path, overwrite=overwrite)  # before minutes are spent on reading data
        starting = StartingWeights(job)
        job, material, state = prepare(job, source, first_weights=starting)

        def fill(folder: Path) -> None:
            directory = RunDirectory(folder)
            write_start(directory, job, material, choices, starting.report, source if keep_data else None)
            save_last(directory, copies(state), [], material, job, choices=choices)

        directory = RunDirectory(create_directory(path, fill, overwrite=overwrite, numbered=numbered))
        if keep_data:  # as when the run is loaded; the page says how to correct this copy
            job = replace(job, data=str(path.with_name(directory.path.name) / directory.data.name))
        return cls(job, directory, material, state, [], 0, list(choices), weights=starting.report, budget=budget)

    @classmethod
    def load(
        cls, path: Place, job: Job | None = None, *, to_train: bool = True, trust_net: bool = False, net: Any = None
    ) -> "Run":
        """The run in a directory, from its last checkpoint; with `job`, only if the run computes the same.

        Unless `to_train`, its nets are not compiled: a test would not earn that back. A net that is not part of the
        package is imported, which runs its code, only with `trust_net`; one that was an object is given as `net`.
        Raises InputError if there is no run, it is damaged, has another job, other data, or a net that is not trusted.
        """
        directory = RunDirectory(checked_path(path, "path"))
        job = same_job(directory, job, trust_net=trust_net, net=net)
        found = restore(directory, job, to_train=to_train)
        trained = found.material, found.state, found.rows, found.state.epoch
        return cls(job, directory, *trained, choices=found.choices, extended_after=found.extended_after)

    def extend(self, num_epochs: int) -> None:
        """Give a finished run more epochs, on disk at once (runs/extension.py has the rule); `train` trains them.

        Raises InputError if the run is not finished, or its method cannot go on.
        """
        with exclusive(self.directory.path):
            job = longer_job(self.job, self.state.epoch, num_epochs)
            stored = self.directory.read_job(trust_net=True)
            self.directory.write_job(replace(stored, settings=longer(stored.settings, job.settings.epochs)))
            (self.directory.path / "summary.json").unlink(missing_ok=True)  # it is that of a finished run
            self.extended_after.append(self.state.epoch)
            self.job = job

    def load_best(self) -> None:
        """Load the nets of the best epoch. Raises InputError unless its checkpoint is there."""
        load_best(self)

    @property
    def kept_epoch(self) -> int:
        """The epoch whose nets are the run's model."""
        return best_epoch(self.rows) if self.material.holdout is not None else self.state.epoch

    @property
    def finished(self) -> bool:
        """Whether every epoch is done."""
        return self.state.epoch >= self.job.settings.epochs

    def train(self) -> None:
        """Train all remaining epochs; see `epochs`. The page is written by `write_report` (report/of_run.py)."""
        for _ in self.epochs():
            pass

    def epochs(self) -> Generator[EpochRow, None, None]:
        """Train the remaining epochs, each when it is asked for; yields the metrics of each.

        A thread writes metrics and checkpoints meanwhile; when the generator ends or is closed, all is on disk. Raises
        InputError if another process trains the run, or has trained it since it was loaded.
        """
        with exclusive(self.directory.path):
            require_unchanged(self.directory, self.job, self.saved_epoch, self.material)
            for folder in (self.directory.last, self.directory.best):  # before anything is written
                remove_strays(folder)
            keep_freed_memory()
            if not self.finished:
                here = environment(self.material.train.labels.device)
                if self.state.epoch:
                    self.directory.warn_of_another_processor(here)
                self.directory.add_environment(here)
            self.directory.write_rows(self.rows)  # drops epochs that were measured but never checkpointed
            for folder in (self.directory.path, self.directory.path / "model"):
                atomic.remove_strays(folder)
            repair_best(self.directory, self.state, self.rows)
            processes.announce(str(self.directory.path.absolute()))
            with Writer() as writer:
                yield from self._epochs(writer)
            if self.finished:  # also if a process died between the last checkpoint and this
                self._finish()

    def _epochs(self, writer: Writer) -> Iterator[EpochRow]:
        """Train epoch by epoch and pass each to the writer; an epoch's time includes passing on the one before."""
        on_cpu = self.material.train.labels.device.type == "cpu"
        started, cpu_started = time.perf_counter(), time.process_time()
        while not self.finished:
            row = self.train_epoch()
            row["seconds"] = time.perf_counter() - started
            if on_cpu:
                row["cpu_seconds"] = time.process_time() - cpu_started
            self.rows.append(row)
            replan(self)
            saving = time.perf_counter()
            writer.submit(self._save(row))
            waited = time.perf_counter() - saving
            yield row
            started, cpu_started = time.perf_counter() - waited, time.process_time()

    def train_epoch(self) -> EpochRow:
        """Train one epoch, together with other processes if there are any, and measure it. Nothing is saved."""
        with processes.together():
            report = train_one(find_method(self.job.method), self.state, self.material.sets, self.job.settings)
            tested = time.perf_counter()
            row = metrics_row(report, self.state.predictors, self.material, is_tested=self.job.test_epochs)
            row["profile"]["test"] = time.perf_counter() - tested
            processes.take_from_first(self.state.tensors())
        return row

    def test_probs(self, name: str = "test") -> NDArray[np.float32]:
        """Probabilities (K, N, C) of one of the material's test sets by each net of the kept epoch.

        Their mean is the prediction.
        """
        with kept_nets(self):
            return self.test_probs_now(name)

    def test_probs_now(self, name: str = "test") -> NDArray[np.float32]:
        """As `test_probs`, by the nets as they are now."""
        tests = self.material.tests
        if name not in tests:
            known = f"it has {', '.join(tests)}" if tests else "give them to the training, as test"
            raise InputError(f"{self.directory.path}: the run has no {name} {self.material.given_kind}: {known}")
        return predict_probs(self.state.predictors, tests[name]).cpu().numpy()

    def predict_proba(self, samples: Any) -> NDArray[np.float32]:
        """Probabilities (N, C) by the nets of the kept epoch, as `Model.predict_proba`."""
        return self.model().predict_proba(samples)

    def predict(self, samples: Any) -> NDArray[Any]:
        """The most likely classes (N,), as `Model.predict`."""
        return self.model().predict(samples)

    def label_issues(self) -> LabelIssues:
        """The method's opinion of every given label, by the nets of the kept epoch."""
        if self._issues is None or self._issues[0] != self.state.epoch:
            self._issues = self.state.epoch, judge_labels(self)
        return self._issues[1]

    @property
    def is_summarised(self) -> bool:
        """Whether `summary` is known: the epochs so far are judged."""
        return self._summary is not None and self._summary[0] == self.state.epoch

    def summary(self) -> RunSummary:
        """The content of summary.json."""
        if self._summary is None or not self.is_summarised:
            self._summary = self.state.epoch, summarise_run(self)
        return self._summary[1].copy()

    def model(self) -> Model:
        """The nets of the kept epoch, with what is needed to use them. Raises InputError if no epoch is trained."""
        if self._model is None or self._model[0] != self.state.epoch:
            self._model = self.state.epoch, kept_model(self)
        return self._model[1]

    def _finish(self) -> None:
        """Write the results of a finished run."""
        self.judge_together()
        if not self.keeps_files:
            return
        self.model().save_pretrained(self.directory.path / "model")
        write_results(self)

    def judge_together(self) -> None:
        """Let all processes judge the labels, once the checkpoints are on disk."""
        with processes.together():
            processes.wait()
            self.label_issues()

    def _save(self, row: EpochRow) -> Callable[[], None]:
        """A function that saves an epoch from copies: metrics, the last checkpoint, which makes it count, the best."""
        epoch, job = self.state.epoch, self.job
        is_best = best_epoch(self.rows) == epoch
        tensors, rows = copies(self.state), list(self.rows)
        if is_best:
            self.best = epoch, net_tensors(tensors)

        def save() -> None:
            if not self.keeps_files:
                return
            self.directory.write_rows(rows)
            if self.budget is not None:
                self.directory.write_job(job)  # before the checkpoint: a plan that is newer than it is allowed
            save_last(self.directory, tensors, rows, self.material, job, self.extended_after, self.choices)
            self.saved_epoch = epoch
            if is_best:
                save_best(self.directory, tensors, row)

        return save
