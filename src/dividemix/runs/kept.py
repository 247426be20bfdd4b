"""The nets of a run's kept epoch, and the model that they make."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from dividemix.engine.checkpoint import load_checkpoint
from dividemix.engine.state import net_tensors
from dividemix.errors import InputError
from dividemix.judging.selection import best_epoch
from dividemix.model.model import Model
from dividemix.nets.build import build_net
from dividemix.runs.model_input import model_input

if TYPE_CHECKING:
    from dividemix.runs.run import Run


def load_best(run: "Run") -> None:
    """Load the nets of the best epoch, from memory or from disk. Raises InputError unless they are there."""
    if not run.rows:
        raise InputError(f"{run.directory.path}: no epoch is trained yet; resume the run")
    row = run.rows[best_epoch(run.rows) - 1]
    if run.best is not None and run.best[0] == row["epoch"]:
        run.state.load_nets(run.best[1])
        return
    folder = run.directory.best
    try:
        tensors, facts = load_checkpoint(folder)
    except InputError as error:
        raise InputError(f"{error}; use the last one instead") from error
    saved = {"epoch": row["epoch"], "test_acc": row["test_acc"], "val_acc": row.get("val_acc")}
    if {name: facts.get(name) for name in saved} != saved:  # a process died between two saves, or it is another run's
        raise InputError(f"{folder}: not of the best epoch; resume the run to repair it")
    try:
        run.state.load_nets(tensors)
    except (KeyError, RuntimeError, ValueError) as error:
        raise InputError(f"{folder}: the checkpoint does not fit the net; use the last one") from error


@contextmanager
def kept_nets(run: "Run") -> Iterator[None]:
    """While inside, the nets are those of the kept epoch."""
    if run.kept_epoch == run.state.epoch:
        yield
        return
    last = {name: tensor.clone() for name, tensor in net_tensors(run.state.tensors()).items()}
    try:
        load_best(run)
        yield
    finally:
        run.state.load_nets(last)


def kept_model(run: "Run") -> Model:
    """A model of the kept epoch. Its nets are its own: further training does not change them.

    Raises InputError if no epoch is trained.
    """
    if not run.state.epoch:
        raise InputError(f"{run.directory.path}: no epoch is trained yet; resume the run")
    s, takes = run.job.settings, model_input(run.job, run.material)
    num_classes, shape = len(run.classes), takes.net_shape
    nets = [build_net(s, num_classes=num_classes, image_shape=shape, seed=0) for _ in run.state.predictors]
    with kept_nets(run):
        for net, trained in zip(nets, run.state.predictors, strict=True):
            net.load_state_dict(trained.state_dict())
            net.to(run.material.train.labels.device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return Model(nets, classes=run.classes, takes=takes, net=s)
