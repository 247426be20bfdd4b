"""Restore a run from its directory: job, data and state, each verified."""

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from dividemix.data.noise import NoiseSpec, parse_noise
from dividemix.engine.checkpoint import load_checkpoint, read_facts
from dividemix.engine.state import State
from dividemix.errors import START_AGAIN, InputError, advised
from dividemix.judging.records import EpochRow
from dividemix.nets.given import use_for
from dividemix.planning.choices import Choice
from dividemix.planning.job import Job
from dividemix.planning.material import Material
from dividemix.planning.prepare import prepare
from dividemix.runs.checkpoints import Facts, check_rows, checked_facts, choices_digest, told_digest
from dividemix.runs.directory import RunDirectory
from dividemix.runs.extension import earlier_end, longer, require_same


def same_job(directory: RunDirectory, job: Job | None, *, trust_net: bool, net: Any = None) -> Job:
    """The run's job, or `job`, on the run's copy of the data if there is one; `net` is the object that it names.

    Raises InputError if `job` computes something else, or the run names code that is not trusted.
    """
    if net is not None:
        use_for(directory.read_net(), net)
    path, stored = directory.path, directory.read_job(trust_net=trust_net)
    job = job or stored
    require_same(job, stored, path)
    if job.settings.kernels == "auto":  # a resumed run keeps its kernels
        job = replace(job, settings=replace(job.settings, kernels=stored.settings.kernels))
    if not directory.data.is_file():
        return job
    if job.data not in (stored.data, str(directory.data)):
        raise InputError(f"{path}: the run has its own data, in data.npz: do not name {job.data}")
    return replace(job, data=str(directory.data))


class Restored(NamedTuple):
    """What a run directory has: data, the state of the last checkpoint, epochs, choices, and when it was extended."""

    material: Material
    state: State
    rows: list[EpochRow]
    choices: list[Choice]
    extended_after: list[int]


def restore(directory: RunDirectory, job: Job, *, to_train: bool) -> Restored:
    """The run in a directory, from its last checkpoint. Raises InputError if job, data, state or epochs do not fit."""
    path = directory.path
    try:
        tensors, stored = load_checkpoint(directory.last)
    except InputError as error:
        raise advised(error, START_AGAIN) from error.__cause__
    noise = parse_noise(job.noise)
    if noise.is_read:  # that file may be gone: the run has a copy
        noise = NoiseSpec("file", path=directory.noise)
    _, material, state = prepare(job, noise=noise, to_train=to_train)
    own = directory.data.is_file()
    if own:
        material = replace(material, skipped=directory.read_skipped(), notes=directory.read_notes())
    facts = checked_facts(directory, stored)
    if facts["job"].get("method") != job.method:  # before a method that is code would be imported
        raise InputError(f"{directory.last}: the checkpoint is of another method than {job.method}; {START_AGAIN}")
    extended_after = facts.get("extended_after", [])
    trained = Job.of(facts["job"] | {"data": job.data, "weights": job.weights})
    if (end := earlier_end(facts, job)) is not None:
        extended_after = [*extended_after, end]
        trained = replace(trained, settings=longer(trained.settings, job.settings.epochs))
    job.as_planned(facts["epoch"]).require_same(trained, directory.last)  # config.yaml may have been edited
    if facts["data"] != material.digest:
        raise InputError(
            f"{path}: the run was trained on other data: {job.data} has changed, or is another data set; use the same"
            " data, or another out"
        )
    try:
        state.load(tensors, facts["epoch"])
    except (LookupError, RuntimeError, ValueError, TypeError) as error:
        raise InputError(f"{path}: the checkpoint does not fit the net {job.settings.net!r}; {START_AGAIN}") from error
    _check_split(path, facts, material, state)
    rows = directory.read_rows()[: state.epoch]
    if len(rows) < state.epoch:
        raise InputError(
            f"{path}: metrics.jsonl has {len(rows)} of the {state.epoch} epochs that were trained; {START_AGAIN}"
        )
    check_rows(directory, rows, facts)
    choices = [Choice(**values) for values in directory.read_choices()]
    if facts.get("choices") not in (None, choices_digest(choices)):  # earlier versions have no digest
        raise InputError(f"{path}: choices.json is damaged (its choices are not those that were saved); {START_AGAIN}")
    if own and facts.get("told") not in (None, told_digest(material.skipped, material.notes)):
        raise InputError(f"{path}: skipped.csv or notes.json is damaged (not what was saved); {START_AGAIN}")
    return Restored(material, state, rows, choices, extended_after)


def _check_split(path: Path, facts: Facts, material: Material, state: State) -> None:
    """Raise InputError unless the samples that train are those of the checkpoint."""
    num_train = len(material.train_index)
    is_other = any(len(values) != num_train for values in state.samples.values())
    if "split" in facts:
        is_other |= facts["split"] != material.split
    else:  # earlier versions held out others of equal samples
        is_other |= material.has_copies
    if is_other:
        raise InputError(
            f"{path}: an earlier version held out other samples, as some are equal: its model can be used, but to"
            f" continue, {START_AGAIN}"
        )


def require_unchanged(directory: RunDirectory, job: Job, saved_epoch: int, material: Material) -> None:
    """Raise InputError if the last checkpoint is not the one that was loaded or saved last."""
    facts = read_facts(directory.last)
    known = {"epoch": saved_epoch, "data": material.digest}
    identity = job.as_planned(saved_epoch).identity
    if (end := earlier_end(facts, job)) is not None:
        identity |= {"epochs": end} | {name: facts["job"].get(name) for name in job.settings.decided(end)}
    changed = any(facts.get(name) != value for name, value in known.items())
    # A setting that is newer than the checkpoint is not in it.
    if changed or any(identity.get(name) != value for name, value in facts.get("job", {}).items()):
        raise InputError(f"{directory.path}: another process has changed it meanwhile; load it again")
