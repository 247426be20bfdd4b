"""What of a run goes into its checkpoints: the last epoch's whole state, the best one's nets."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from dividemix.engine.checkpoint import save_checkpoint
from dividemix.engine.state import State
from dividemix.planning.job import Job
from dividemix.planning.material import Material
from dividemix.runs.directory import RunDirectory


def copies(state: State) -> dict[str, Tensor]:
    """The state's tensors in memory of their own, which training does not change."""
    return {name: tensor.detach().to("cpu", copy=True) for name, tensor in state.tensors().items()}


def save_last(directory: RunDirectory, tensors: Mapping[str, Tensor], epoch: int, material: Material, job: Job) -> None:
    """All that a run needs to go on, with what tells whether it is the same job on the same data."""
    facts = {"epoch": epoch, "data": material.digest, "job": job.identity}
    save_checkpoint(directory.last, tensors, tag=f"epoch-{epoch:04d}", facts=facts)


def save_best(directory: RunDirectory, tensors: Mapping[str, Tensor], row: dict[str, Any]) -> None:
    """The nets of an epoch, with its accuracies."""
    nets = {name: tensor for name, tensor in tensors.items() if name.startswith("nets.")}
    facts = {"epoch": row["epoch"], "test_acc": row["test_acc"], "val_acc": row.get("val_acc")}
    save_checkpoint(directory.best, nets, tag=f"epoch-{row['epoch']:04d}", facts=facts)
