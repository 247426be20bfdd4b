"""The checkpoints of a run: the whole state of the last epoch, the nets of the best one."""

from collections.abc import Mapping

from torch import Tensor

from dividemix.engine.checkpoint import save_checkpoint
from dividemix.engine.state import State, net_tensors
from dividemix.judging.records import EpochRow
from dividemix.planning.job import Job
from dividemix.planning.material import Material
from dividemix.runs.directory import RunDirectory


def copies(state: State) -> dict[str, Tensor]:
    """Copies of the state's tensors, on the CPU, which training does not change."""
    return {name: tensor.detach().to("cpu", copy=True) for name, tensor in state.tensors().items()}


def save_last(directory: RunDirectory, tensors: Mapping[str, Tensor], epoch: int, material: Material, job: Job) -> None:
    """Save all that is needed to resume a run, and what shows that job and data are the same."""
    facts = {"epoch": epoch, "data": material.digest, "job": job.identity}
    save_checkpoint(directory.last, tensors, tag=f"epoch-{epoch:04d}", facts=facts)


def save_best(directory: RunDirectory, tensors: Mapping[str, Tensor], row: EpochRow) -> None:
    """Save the nets of an epoch, with its accuracies."""
    facts = {"epoch": row["epoch"], "test_acc": row["test_acc"], "val_acc": row.get("val_acc")}
    save_checkpoint(directory.best, net_tensors(tensors), tag=f"epoch-{row['epoch']:04d}", facts=facts)
