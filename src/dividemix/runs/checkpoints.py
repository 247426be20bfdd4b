"""The checkpoints of a run: the whole state of the last epoch, the nets of the best one."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NotRequired, TypedDict, cast

from torch import Tensor

from dividemix.data.source import Skipped
from dividemix.engine.checkpoint import load_checkpoint, read_facts, save_checkpoint
from dividemix.engine.state import State, net_tensors
from dividemix.errors import START_AGAIN, InputError
from dividemix.judging.records import EpochRow
from dividemix.judging.selection import best_epoch
from dividemix.planning.choices import Choice
from dividemix.planning.job import Job
from dividemix.planning.material import Material
from dividemix.runs.directory import RunDirectory, skipped_csv
from dividemix.stored import check_shape, digest_of


class Facts(TypedDict):
    """What the last checkpoint says about itself."""

    epoch: int
    metrics: str  # digest of the epochs in metrics.jsonl
    data: str  # digest of the data
    split: NotRequired[str]  # digest of which samples train, as others are held out; earlier versions have none
    job: dict[str, Any]
    choices: NotRequired[str]  # digest of choices.json, if there is one
    told: NotRequired[str]  # digest of skipped.csv and notes.json, if there are any
    extended_after: NotRequired[list[int]]  # the epochs at which the finished run was given more


def copies(state: State) -> dict[str, Tensor]:
    """Copies of the state's tensors, on the CPU, which training does not change."""
    return {name: tensor.detach().to("cpu", copy=True) for name, tensor in state.tensors().items()}


def save_last(
    directory: RunDirectory,
    tensors: Mapping[str, Tensor],
    rows: list[EpochRow],
    material: Material,
    job: Job,
    extended_after: Sequence[int] = (),
    choices: Sequence[Choice] = (),
) -> None:
    """Save all that is needed to resume a run, and what shows that epochs, job and data are the same."""
    epoch = len(rows)
    planned = job.as_planned(epoch).identity
    facts: Facts = {"epoch": epoch, "metrics": rows_digest(rows), "data": material.digest, "job": planned}
    facts["split"] = material.split
    if choices:
        facts["choices"] = choices_digest(choices)
    if material.skipped or material.notes:
        facts["told"] = told_digest(material.skipped, material.notes)
    if extended_after:
        facts["extended_after"] = list(extended_after)
    save_checkpoint(directory.last, tensors, tag=f"epoch-{epoch:04d}", facts=dict(facts))


def rows_digest(rows: list[EpochRow]) -> str:
    """The digest of the epochs in metrics.jsonl, apart from the times, which equal trainings do not have in common."""
    times = ("seconds", "cpu_seconds", "profile")
    return digest_of(b"", [{name: value for name, value in row.items() if name not in times} for row in rows])


def saved_rows(directory: RunDirectory) -> list[EpochRow]:
    """The epochs in metrics.jsonl, without loading the run. Raises InputError if they are not those that were saved."""
    if not directory.last.is_dir():  # removed, to save space: there is nothing to compare with
        return directory.read_rows()
    # Before the epochs: who trains writes an epoch first, and its checkpoint then.
    facts = checked_facts(directory, read_facts(directory.last))
    rows = directory.read_rows()
    check_rows(directory, rows, facts)
    return rows


def checked_facts(directory: RunDirectory, facts: dict[str, Any]) -> Facts:
    """The facts of the last checkpoint. Raises InputError unless they have the shape of facts."""
    try:
        check_shape(facts, Facts)
    except ValueError as error:
        raise InputError(f"{directory.last}: the checkpoint is damaged ({error}); {START_AGAIN}") from error
    return cast(Facts, facts)


def check_rows(directory: RunDirectory, rows: list[EpochRow], facts: Facts) -> None:
    """Raise InputError unless the first of these epochs are those of a checkpoint with these facts."""
    if rows_digest(rows[: facts["epoch"]]) != facts["metrics"]:
        raise InputError(
            f"{directory.path}: metrics.jsonl is damaged (its epochs are not those that were saved); {START_AGAIN}"
        )


def choices_digest(choices: Sequence[Choice]) -> str:
    """The digest of the choices in choices.json."""
    return digest_of(b"", [asdict(choice) for choice in choices])


def told_digest(skipped: Sequence[Skipped], notes: Sequence[str]) -> str:
    """The digest of skipped.csv and the lines in notes.json."""
    return digest_of(skipped_csv(skipped).encode(), list(notes))


def save_best(directory: RunDirectory, tensors: Mapping[str, Tensor], row: EpochRow) -> None:
    """Save the nets of an epoch, with its accuracies."""
    facts = {"epoch": row["epoch"], "test_acc": row["test_acc"], "val_acc": row.get("val_acc")}
    save_checkpoint(directory.best, net_tensors(tensors), tag=f"epoch-{row['epoch']:04d}", facts=facts)


def repair_best(directory: RunDirectory, state: State, rows: list[EpochRow]) -> None:
    """Save the last epoch as the best one, if it is and a process died between the two saves."""
    if rows and best_epoch(rows) == state.epoch:
        try:
            saved = load_checkpoint(directory.best)[1].get("epoch")
        except InputError:
            saved = None
        if saved != state.epoch:
            save_best(directory, copies(state), rows[-1])
