"""Other numbers of epochs under way. Oracle: the training that had the new number from the start.

An epoch of both is of the same phase, begins with values of the same names, and as many epochs after a restart.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from method_checks import started
from tiny import TinyData

from dividemix.errors import InputError
from dividemix.methods import METHODS, find_method, incv, loop, restart
from dividemix.methods.method import MethodSettings, TrainingSets
from dividemix.planning.budget import _plan
from dividemix.planning.job import Job, known_to
from dividemix.runs.extension import longer_job

# What the LIDs of tiny nets say is left to chance: D2L does not keep weights to go back to.
FIELDS: dict[str, Any] = {"epochs": 12, "batch_size": 8, "lr": 0.01, "rollback": False, "num_branches": 2, "window": 3}
PLANNED = [name for name, method in METHODS.items() if not method.needs_vectors]
LENGTHS = ("warmup_epochs", "rampup_epochs")
Epochs = list[tuple[Any, ...]]


def job_of(name: str, epochs: int, **fields: Any) -> Job:
    values = FIELDS | {"epochs": epochs, "warmup_epochs": 3, "rampup_epochs": 4} | fields
    return Job.of({"data": "fashion", "method": name} | known_to(name, values))


def plans(job: Job, num_trained: int, new: Sequence[int]) -> Iterator[MethodSettings]:
    """The settings of the plans with so many epochs in all, where they may follow the finished ones."""
    for epochs in new:
        if epochs >= num_trained and (plan := _plan(job, epochs, num_trained, LENGTHS, on_cpu=True)) is not None:
            yield job.settings.replanned(num_trained, plan[0])


def each(name: str, s: MethodSettings) -> list[str]:
    """The phase of each epoch; a round of INCV, which begins again, counts as one."""
    phases = [phase.name for phase in find_method(name).phases(s) for _ in range(phase.num_epochs)]
    if isinstance(s, incv.INCVSettings):
        phases[: s.select_epochs] = [f"round {epoch // s.round_length}" for epoch in range(s.select_epochs)]
    return phases


class Watched:
    """A training whose every epoch is noted."""

    def __init__(self, name: str, s: MethodSettings, monkeypatch: pytest.MonkeyPatch):
        self.method, self.sets = find_method(name), TrainingSets(TinyData(24))
        self.state, self.epochs, self.last_restart = started(self.method, s, self.sets), list[tuple[Any, ...]](), 0
        self.restart, self.patch = restart.restart, monkeypatch

    def train(self, s: MethodSettings, until: int) -> Epochs:
        """Train until so many epochs, and return what is known of each of them."""

        def noted(state: Any) -> None:
            self.last_restart = state.epoch
            self.restart(state)

        with self.patch.context() as patch:
            patch.setattr(restart, "restart", noted)
            while (epoch := self.state.epoch) < until:
                before = sorted({*self.state.samples, *self.state.buffers})
                report = loop.train_one(self.method, self.state, self.sets, s)
                self.epochs.append((report.phase, epoch - self.last_restart, before, sorted(report.figures)))
        return self.epochs


@pytest.mark.parametrize("name", PLANNED)
def test_finished_epochs_are_of_the_phases_that_the_new_plan_has(name: str) -> None:
    """For many numbers of epochs, finished and planned."""
    for epochs, num_trained in product((7, 12, 20, 24, 100), (1, 2, 3, 5, 8, 21)):
        if num_trained < epochs:
            job = job_of(name, epochs)
            before = each(name, job.settings)[:num_trained]
            for s in plans(job, num_trained, (2, 3, 5, 6, 8, 9, 11, 13, 16, 22, 30, 50, 120)):
                assert each(name, s)[:num_trained] == before
                assert each(name, s.in_force(num_trained - 1))[:num_trained] == before


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANNED)
@pytest.mark.parametrize(("epochs", "num_trained"), [(24, 3), (18, 4), (12, 6)])
def test_epochs_after_a_new_plan_rest_on_what_they_need(
    name: str, epochs: int, num_trained: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_of(name, epochs)
    for s in plans(job, num_trained, (5, 7, 11, 15, 22)):
        changed = Watched(name, job.settings, monkeypatch)
        changed.train(job.settings, num_trained)
        found = changed.train(s, s.epochs)[num_trained:]
        straight = replace(s, earlier_plans="")
        expected = Watched(name, straight, monkeypatch).train(straight, s.epochs)[num_trained:]
        assert found == expected, (s.epochs, s.earlier_plans)


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANNED)
@pytest.mark.parametrize(("epochs", "num_more"), [(8, 1), (6, 3), (10, 10)])
def test_added_epochs_rest_on_what_they_need(
    name: str, epochs: int, num_more: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Restarts are where they were: the longer training may have them elsewhere, unless their places are decided."""
    job = job_of(name, epochs)
    try:
        s = longer_job(job, epochs, num_more).settings
    except InputError:
        return  # it is refused
    added = Watched(name, job.settings, monkeypatch)
    added.train(job.settings, epochs)
    found, last_restart = added.train(s, s.epochs)[epochs:], added.last_restart
    straight = Watched(name, s, monkeypatch)
    expected = straight.train(s, s.epochs)[epochs:]
    assert last_restart < epochs
    if job.settings.decided(epochs):
        assert found == expected
    assert [(phase, *names) for phase, _, *names in found] == [(phase, *names) for phase, _, *names in expected]
