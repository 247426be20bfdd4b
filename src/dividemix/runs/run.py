"""A training and its directory: create or resume it, train it epoch by epoch, evaluate it."""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dividemix.algorithm.ensemble import predict_probs
from dividemix.data.noise import NoiseSpec, parse_noise, save_noise
from dividemix.data.source import Source
from dividemix.engine.checkpoint import load_checkpoint, read_facts, remove_strays
from dividemix.engine.lock import exclusive
from dividemix.engine.memory import keep_freed_memory
from dividemix.engine.state import State
from dividemix.engine.writer import Writer
from dividemix.errors import START_AGAIN, InputError
from dividemix.judging import scoring
from dividemix.judging.label_issues import LabelIssues, find_issues
from dividemix.judging.metrics import metrics_row
from dividemix.judging.selection import best_epoch
from dividemix.methods import find_method
from dividemix.model.model import Model
from dividemix.nets.build import refuse_foreign
from dividemix.nets.weights import WeightsReport, load_weights
from dividemix.planning.choices import Choice, late_choices
from dividemix.planning.job import Job
from dividemix.planning.material import Material
from dividemix.planning.prepare import prepare
from dividemix.runs import results
from dividemix.runs.checkpoints import copies, save_best, save_last
from dividemix.runs.directory import RunDirectory, environment, refuse_existing


@dataclass
class Run:
    """A run on disk and in memory.

    `rows` are its epochs so far, as in metrics.jsonl; `saved_epoch` is the one that the last checkpoint on disk has.
    The epoch to keep is the best on clean validation images; or the last one that does about best on the samples held
    out, whose labels are as noisy as all; without either, the last of all.
    """

    job: Job
    directory: RunDirectory
    material: Material
    state: State
    rows: list[dict[str, Any]]
    saved_epoch: int
    choices: list[Choice]
    weights: WeightsReport | None = None  # what a new run took of the file that it starts from

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
    ) -> "Run":
        """A new run, on disk before its first epoch, of the job's data or of `source`, if that has been read already.

        `choices` are settings of the job that were made automatically, for the summary and the report. `keep_data`
        puts a copy of the source into the directory, for data that lies nowhere else.

        Raises:
            InputError: if the job is wrong, or something is in the way.
        """
        refuse_existing(path, overwrite=overwrite)  # before minutes are spent on reading data
        material, state = prepare(job, source)
        weights = [load_weights(net, Path(job.weights)) for net in state.nets] if job.weights else []

        def fill(directory: RunDirectory) -> None:
            directory.write_job(job)
            if choices:
                directory.write_json("choices.json", [asdict(choice) for choice in choices])
            if material.skipped:
                directory.write_skipped(material.skipped)
            if keep_data and source is not None:
                directory.write_data(source)
            about_weights = {"weights": str(weights[0])} if weights else {}
            directory.write_json("env.json", environment(material.train.labels.device) | about_weights)
            if material.noise is not None and material.true_labels is not None:
                save_noise(directory.noise, material.noise, material.true_labels)
            save_last(directory, copies(state), state.epoch, material, job)

        directory = RunDirectory.create(path, fill, overwrite=overwrite)
        run = cls(job, directory, material, state, [], saved_epoch=0, choices=list(choices))
        run.weights = weights[0] if weights else None
        return run

    @classmethod
    def load(cls, path: Path | str, job: Job | None = None, *, to_train: bool = True, trust_net: bool = False) -> "Run":
        """The run in a directory, as its last checkpoint has it; with `job`, only if that is what it does.

        Not `to_train`, its nets are not compiled: a test would not earn that back. A net that is not the package's own
        is imported, which runs its code, only with `trust_net`.

        Raises:
            InputError: if there is no run, it is damaged, does another job, has other data, or a net that is not
                trusted.
        """
        path = Path(path)
        directory = RunDirectory(path)
        stored = directory.read_job()
        refuse_foreign(stored.config.net, path / "config.yaml", trust_net=trust_net)
        job = job or stored
        job.require_same(stored, path)
        if directory.data.is_file():
            if job.data not in (stored.data, str(directory.data)):
                raise InputError(f"{path}: keeps its own data, in data.npz: leave out {job.data}")
            job = replace(job, data=str(directory.data))
        try:
            tensors, facts = load_checkpoint(directory.last)
        except InputError as error:
            raise InputError(f"{error}; {START_AGAIN}") from error
        material, state = prepare(job, noise=_own_noise(job, directory), may_compile=to_train)
        if directory.data.is_file():
            material = replace(material, skipped=directory.read_skipped())
        if facts.keys() != {"epoch", "data", "job"}:
            raise InputError(f"{directory.last}: the checkpoint is damaged; {START_AGAIN}")
        trained = Job.of(facts["job"] | {"data": job.data, "weights": job.weights})
        job.require_same(trained, directory.last)  # config.yaml may have been edited
        if facts["data"] != material.digest:
            raise InputError(f"{path}: was trained on other data than {job.data} holds now; use another --out")
        try:
            state.load(tensors, facts["epoch"])
        except (KeyError, RuntimeError, ValueError) as error:
            raise InputError(f"{path}: the checkpoint does not fit the net {job.config.net!r}") from error
        rows = directory.read_rows()[: state.epoch]
        if len(rows) < state.epoch:
            raise InputError(
                f"{path}: metrics.jsonl has {len(rows)} of the {state.epoch} epochs that were trained; {START_AGAIN}"
            )
        choices = [Choice(**values) for values in directory.read_choices()]
        return cls(job, directory, material, state, rows, saved_epoch=state.epoch, choices=choices)

    def load_best(self) -> None:
        """Give the nets the weights of the best epoch: on the samples held out, or else on the test images.

        Raises:
            InputError: if there is no such checkpoint, or it is of another epoch: a process died between two saves.
        """
        if not self.rows:
            raise InputError(f"{self.directory.path}: no epoch is trained yet; resume the run")
        try:
            tensors, facts = load_checkpoint(self.directory.best)
        except InputError as error:
            raise InputError(f"{error}; take the last one instead") from error
        if facts.get("epoch") != best_epoch(self.rows):
            raise InputError(f"{self.directory.best}: is not of the best epoch; resume the run, which mends it")
        self.state.load_nets(tensors)

    @contextmanager
    def _kept_nets(self) -> Iterator[None]:
        """While inside, the nets are those of the kept epoch."""
        if self.kept_epoch == self.state.epoch:
            yield
            return
        last = {name: tensor.clone() for name, tensor in self.state.tensors().items() if name.startswith("nets.")}
        try:
            self.load_best()
            yield
        finally:
            self.state.load_nets(last)

    @property
    def left_out(self) -> str | None:
        """How many files of the data could not be used, where they are listed, and the first; None if all could."""
        skipped = self.material.skipped
        if not skipped:
            return None
        where = self.directory.path / "skipped.csv"
        return f"left out {len(skipped)} of the files, all listed in {where}; {skipped[0].path}: {skipped[0].reason}"

    @property
    def kept_epoch(self) -> int:
        """The epoch whose nets are the run's model."""
        return best_epoch(self.rows) if self.material.holdout is not None else self.state.epoch

    @property
    def finished(self) -> bool:
        """Whether every epoch is done."""
        return self.state.epoch >= self.job.config.epochs

    def train(self) -> Generator[dict[str, Any], None, None]:
        """Train the epochs that are left; yields each one's metrics.

        They and a checkpoint are written meanwhile by a thread; when the generator ends, or is closed, all is on disk.

        Raises:
            InputError: if another process trains the run, or has done so since it was loaded.
        """
        with exclusive(self.directory.path):
            if read_facts(self.directory.last).get("epoch") != self.saved_epoch:
                raise InputError(f"{self.directory.path}: another process has trained it meanwhile; load it again")
            keep_freed_memory()
            self.directory.write_rows(self.rows)  # drops epochs that were measured but never checkpointed
            for folder in (self.directory.last, self.directory.best):
                remove_strays(folder)
            self._mend_best()
            with Writer() as writer:
                yield from self._epochs(writer)
            if self.finished:  # also where a process died between the last checkpoint and this
                self._finish()

    def _epochs(self, writer: Writer) -> Iterator[dict[str, Any]]:
        """Train epoch by epoch and give each to the writer; an epoch's time includes handing over the one before."""
        started = time.perf_counter()
        for report in find_method(self.job.method).fit(self.state, self.material.train, self.job.config):
            tested = time.perf_counter()
            row = metrics_row(report, self.state.nets, self.material)
            row["profile"] = report.seconds | {"test": time.perf_counter() - tested}
            row["seconds"] = time.perf_counter() - started
            saving = time.perf_counter()
            writer.submit(self._save(row))
            waited = time.perf_counter() - saving
            yield row
            started = time.perf_counter() - waited

    def test_probs(self, name: str = "test") -> NDArray[np.float32]:
        """Probabilities (K, N, C) of the test images by each net; their mean over K is the ensemble's prediction.

        `name` is that of another set to test on, of those that the material has.
        """
        tests = self.material.tests
        if name not in tests:
            raise InputError(f"{self.directory.path}: its data has no {name} images")
        return predict_probs(self.state.nets, tests[name]).cpu().numpy()

    def predict_proba(self, images: Any) -> NDArray[np.float32]:
        """Probabilities (N, C), by the nets of the kept epoch, of images as `dividemix.train` takes them.

        Raises:
            InputError: for images of another size, or an image that cannot be read.
        """
        model = Model.from_pretrained(self.directory.path, self.job.config.device, trust_net=":" in self.job.config.net)
        return model.predict_proba(images)

    def label_issues(self) -> LabelIssues:
        """What the nets of the kept epoch think of every given label."""
        material = self.material
        with self._kept_nets():
            return find_issues(
                self.state.nets,
                material.everything,
                self.job.config,
                classes=material.classes,
                paths=material.paths,
                rows=material.rows,
            )

    def report(self) -> Path:
        """report.html of a finished run."""
        if not self.finished:
            raise InputError(f"{self.directory.path}: the run is not finished; train it to its end first")
        path = self.directory.path / "report.html"
        if not path.is_file():  # a process died between the last epoch and this
            self._finish()
        return path

    def summary(self) -> dict[str, Any]:
        """The figures that summary.json holds."""
        noise, test = self.material.noise, self.material.test
        summary = {"method": self.job.method, "seed": self.job.config.seed} | scoring.summarise(self.rows)
        if noise is not None:
            summary["noise"] = {"spec": self.job.noise, "nominal": noise.nominal_rate, "true": noise.true_rate}
        summary["kept_epoch"] = self.kept_epoch
        summary |= scoring.kept_scores(self.rows[self.kept_epoch - 1], self.material.tests)
        if test is not None:
            with self._kept_nets():
                probs = self.test_probs().mean(axis=0)
            summary["class_recall"] = scoring.class_recall(probs, test.labels.cpu().numpy(), self.material.classes)
        summary["num_skipped"] = len(self.material.skipped)
        late = late_choices(self.rows, self.kept_epoch) if self.choices else []
        summary["choices"] = [asdict(choice) for choice in self.choices + late]
        return summary

    def _finish(self) -> None:
        """Write what a finished run leaves: the model, the suspects, the page, and last the summary."""
        issues = self.label_issues()
        summary = self.summary() | {"noise_rate": issues.noise_rate}
        with self._kept_nets():
            model = Model(
                self.state.nets,
                classes=self.material.classes,
                image_shape=self.material.image_shape,
                mean=self.material.mean,
                std=self.material.std,
                config=self.job.config,
            )
            model.save_pretrained(self.directory.path / "model")
        results.write(self.directory, self.material, issues, summary, self.rows)
        self.directory.write_json("summary.json", summary)

    def _mend_best(self) -> None:
        """Save the last epoch as the best where it is, and a process died between the two saves."""
        if self.rows and best_epoch(self.rows) == self.state.epoch:
            try:
                saved = load_checkpoint(self.directory.best)[1].get("epoch")
            except InputError:
                saved = None
            if saved != self.state.epoch:
                save_best(self.directory, copies(self.state), self.rows[-1])

    def _save(self, row: dict[str, Any]) -> Callable[[], None]:
        """What puts an epoch on disk, from copies: metrics, the last checkpoint, by which it counts, then the best."""
        self.rows.append(row)
        epoch = self.state.epoch
        is_best = best_epoch(self.rows) == epoch
        tensors = copies(self.state)

        def save() -> None:
            self.directory.append_row(row)
            save_last(self.directory, tensors, epoch, self.material, self.job)
            self.saved_epoch = epoch
            if is_best:
                save_best(self.directory, tensors, row)

        return save


def _own_noise(job: Job, directory: RunDirectory) -> NoiseSpec:
    """The job's noise; where it came from a file, which may be gone by now, from the run's own."""
    spec = parse_noise(job.noise)
    return spec if spec.path is None else NoiseSpec("file", path=directory.noise)
