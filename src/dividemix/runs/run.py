"""A training and its directory: create or resume it, train it epoch by epoch, evaluate it."""

import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dividemix.algorithm.dividemix import EpochReport
from dividemix.algorithm.ensemble import predict_probs
from dividemix.algorithm.state import State
from dividemix.data.noise import save_noise
from dividemix.engine.acceleration import autocast_net, compile_net, worth_compiling
from dividemix.engine.checkpoint import load_checkpoint, remove_strays, save_checkpoint
from dividemix.engine.device import choose_device, choose_dtype
from dividemix.engine.lock import exclusive
from dividemix.engine.writer import Writer
from dividemix.errors import InputError
from dividemix.methods import METHODS
from dividemix.nets import build_net
from dividemix.runs import scoring
from dividemix.runs.directory import RunDirectory, environment, refuse_existing
from dividemix.runs.job import PLACES, Job
from dividemix.runs.material import Material, gather


@dataclass
class Run:
    """A run on disk and in memory.

    `rows` are its epochs so far, as in metrics.jsonl; `saved_epoch` is the one that the last checkpoint on disk has.
    """

    job: Job
    directory: RunDirectory
    material: Material
    state: State
    rows: list[dict[str, Any]]
    saved_epoch: int

    @classmethod
    def create(cls, path: Path, job: Job, *, overwrite: bool = False) -> "Run":
        """A new run, on disk before its first epoch.

        Raises:
            InputError: if the job is wrong, or something is in the way.
        """
        refuse_existing(path, overwrite=overwrite)  # before minutes are spent on reading data
        material, state = _prepare(job)

        def fill(directory: RunDirectory) -> None:
            directory.write_job(job)
            directory.write_json("env.json", environment(material.train.labels.device))
            if material.noise is not None and material.true_labels is not None:
                save_noise(directory.path / "noise.json", material.noise, material.true_labels)
            _save_last(directory, _copies(state), state.epoch, material, job)

        directory = RunDirectory.create(path, fill, overwrite=overwrite)
        return cls(job, directory, material, state, [], saved_epoch=0)

    @classmethod
    def load(cls, path: Path, job: Job | None = None, *, to_train: bool = True) -> "Run":
        """The run in a directory, as its last checkpoint has it; with `job`, only if that is what it does.

        Not `to_train`, its nets are not compiled: a test would not earn that back.

        Raises:
            InputError: if there is no run, it is damaged, or it does another job or has other data.
        """
        directory = RunDirectory(path)
        stored = directory.read_job()
        job = stored if job is None else _same(job, stored, path)
        tensors, facts = load_checkpoint(directory.last)
        material, state = _prepare(job, may_compile=to_train)
        if facts.keys() != {"epoch", "data", "job"}:
            raise InputError(f"{directory.last}: the checkpoint is damaged; start again with --overwrite")
        _same(job, Job.of(facts["job"] | {"data": job.data}), directory.last)  # config.yaml may have been edited
        if facts["data"] != material.digest:
            raise InputError(f"{path}: was trained on other data than {job.data} holds now; use another --out")
        try:
            state.load(tensors, facts["epoch"])
        except (KeyError, RuntimeError, ValueError) as error:
            raise InputError(f"{path}: the checkpoint does not fit the net {job.config.net!r}") from error
        rows = directory.read_rows()[: state.epoch]
        if len(rows) < state.epoch:
            raise InputError(f"{path}: metrics.jsonl has {len(rows)} of the {state.epoch} epochs that were trained")
        return cls(job, directory, material, state, rows, saved_epoch=state.epoch)

    def load_best(self) -> None:
        """Give the nets the weights they had in the epoch that tested best."""
        tensors, _ = load_checkpoint(self.directory.best)
        self.state.load_nets(tensors)

    @property
    def finished(self) -> bool:
        """Whether every epoch is done."""
        return self.state.epoch >= self.job.config.epochs

    def train(self) -> Generator[dict[str, Any], None, None]:
        """Train the epochs that are left; yields each one's metrics.

        They and a checkpoint are written meanwhile by a thread; when the generator ends, or is closed, all is on disk.
        """
        fit = METHODS[self.job.method].fit
        with exclusive(self.directory.path), Writer() as writer:
            self.directory.write_rows(self.rows)  # drops epochs that were measured but never checkpointed
            for folder in (self.directory.last, self.directory.best):
                remove_strays(folder)
            started = time.perf_counter()
            for report in fit(self.state, self.material.train, self.job.config):
                tested = time.perf_counter()
                row = self._measure(report)
                row["profile"] = report.seconds | {"test": time.perf_counter() - tested}
                row["seconds"] = time.perf_counter() - started
                writer.submit(self._save(row))
                yield row
                started = time.perf_counter()
        if self.finished:  # also where a process died between the last checkpoint and this
            self.directory.write_json("summary.json", self.summary())

    def test_probs(self) -> NDArray[np.float32]:
        """Probabilities (K, N, C) of the test images by each net; their mean over K is the ensemble's prediction."""
        test = self.material.test
        if test is None:
            raise InputError(f"{self.directory.path}: its data has no test images")
        return predict_probs(self.state.nets, test).cpu().numpy()

    def summary(self) -> dict[str, Any]:
        """The figures that summary.json holds."""
        noise, test = self.material.noise, self.material.test
        summary = {"method": self.job.method, "seed": self.job.config.seed} | scoring.summarise(self.rows)
        if noise is not None:
            summary["noise"] = {"spec": self.job.noise, "nominal": noise.nominal_rate, "true": noise.true_rate}
        if test is not None:
            probs = self.test_probs().mean(axis=0)
            summary["class_recall"] = scoring.class_recall(probs, test.labels.cpu().numpy(), self.material.classes)
        return summary

    def _measure(self, report: EpochReport) -> dict[str, Any]:
        """The epoch as a row of metrics.jsonl."""
        test, true_labels = self.material.test, self.material.true_labels
        row: dict[str, Any] = {"epoch": report.epoch, "phase": report.phase, "seconds": 0.0, "test_acc": None}
        if test is not None:
            row["test_acc"] = scoring.accuracy(self.test_probs().mean(axis=0), test.labels.cpu().numpy())
        if report.divisions:
            row["num_labeled"] = [len(division.labeled) for division in report.divisions]
            if true_labels is not None:
                is_clean = self.material.train.labels.cpu().numpy() == true_labels
                aucs = [scoring.clean_auc(division.clean_prob.numpy(), is_clean) for division in report.divisions]
                row["clean_auc"] = None if None in aucs else aucs
        return row | report.losses

    def _save(self, row: dict[str, Any]) -> Callable[[], None]:
        """What puts an epoch on disk, from copies: metrics, the best checkpoint, then the last: now it counts."""
        best = max((known["test_acc"] for known in self.rows if known["test_acc"] is not None), default=-1.0)
        is_best = row["test_acc"] is not None and row["test_acc"] > best
        self.rows.append(row)
        epoch = self.state.epoch
        tensors = _copies(self.state)

        def save() -> None:
            self.directory.append_row(row)
            if is_best:
                nets = {name: tensor for name, tensor in tensors.items() if name.startswith("nets.")}
                facts = {"epoch": epoch, "test_acc": row["test_acc"]}
                save_checkpoint(self.directory.best, nets, tag=f"epoch-{epoch:04d}", facts=facts)
            _save_last(self.directory, tensors, epoch, self.material, self.job)
            self.saved_epoch = epoch

        return save


def _copies(state: State) -> dict[str, Tensor]:
    """The state's tensors in memory of their own, which training does not change."""
    return {name: tensor.detach().to("cpu", copy=True) for name, tensor in state.tensors().items()}


def _prepare(job: Job, *, may_compile: bool = True) -> tuple[Material, State]:
    """The job's data, and its state before the first epoch."""
    if job.method not in METHODS:
        raise InputError(f"unknown method {job.method!r}: known are {', '.join(METHODS)}")
    device = choose_device(job.config.device)
    config, material = job.config, gather(job, device)
    num_nets, num_samples = METHODS[job.method].num_nets, len(material.train.labels)
    dtype = choose_dtype(config.precision, device)
    nets = []
    for k in range(num_nets):
        seed = 2 * config.seed + k  # different weights for each net of each seed
        net = build_net(config, num_classes=len(material.classes), image_shape=material.image_shape, seed=seed)
        net = net.to(device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        if dtype != torch.float32:
            autocast_net(net, device, dtype)
        nets.append(net)
    # A sample is forwarded about six times an epoch for each net, counting a backward as two.
    num_rows = 6 * num_nets * num_samples * config.epochs
    if may_compile and (
        config.compile == "always"
        or (config.compile == "auto" and worth_compiling(nets[0], material.image_shape, num_rows, device))
    ):
        for net in nets:
            compile_net(net)
    return material, State.start(nets, num_samples, config, scale_loss=dtype == torch.float16)


def _same(job: Job, stored: Job, path: Path) -> Job:
    """The job, if it differs from the stored one in places only."""
    wanted, there = job.values(), stored.values()
    for name in wanted:
        if name not in PLACES and wanted[name] != there[name]:
            raise InputError(
                f"{path}: the run there has {name} {there[name]}, not {wanted[name]}:"
                " resume it with the same settings, or use another --out"
            )
    return job


def _save_last(
    directory: RunDirectory, tensors: Mapping[str, Tensor], epoch: int, material: Material, job: Job
) -> None:
    values = {name: value for name, value in job.values().items() if name not in PLACES}
    facts = {"epoch": epoch, "data": material.digest, "job": values}
    save_checkpoint(directory.last, tensors, tag=f"epoch-{epoch:04d}", facts=facts)
