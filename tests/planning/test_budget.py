"""Planning again. Oracles: sums worked out by hand, and the phases of every method before and after."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from dividemix.errors import InputError
from dividemix.methods import METHODS, find_method
from dividemix.methods.loop import phase_at
from dividemix.planning.budget import MAX_EPOCHS, Budget, near_enough, plan_again
from dividemix.planning.job import Job, known_to

LENGTHS = ("warmup_epochs", "rampup_epochs")


def job_of(method: str = "dividemix", **values: Any) -> Job:
    """18 epochs: with dividemix three of warm-up, 15 of cost 3.5."""
    lengths = known_to(method, {"epochs": 18, "warmup_epochs": 3, "rampup_epochs": 15} | values)
    return Job.of({"data": "fashion", "method": method} | lengths)


def planned(
    took: Sequence[float], left: float, chosen: Sequence[str] = LENGTHS, **values: Any
) -> dict[str, int] | None:
    return plan_again(job_of(**values), took, left, 1.0, chosen, on_cpu=True)


def test_a_plan_that_ends_near_the_limit_is_kept() -> None:
    """After five epochs there are 13 mix epochs to come, of 7 s."""
    took = [2.0, 2.0, 2.0, 7.0, 7.0]
    for left in (90.0, 91.0, 92.0):
        assert planned(took, left) is None
    assert planned(took, 88.0) is None  # twelve of them end farther away


def test_fewer_or_more_epochs_end_nearest_to_the_limit() -> None:
    took = [2.0, 2.0, 2.0, 7.0, 7.0]
    for left, more in ((87.0, 12), (70.0, 10), (31.6, 5), (31.4, 4), (120.0, 17)):
        assert planned(took, left) == {"epochs": 5 + more, "warmup_epochs": 3, "rampup_epochs": min(16, 2 + more)}
    assert planned(took, 2.0) == {"epochs": 5, "warmup_epochs": 3, "rampup_epochs": 2}  # it ends now
    assert planned(took, -9.0) == {"epochs": 5, "warmup_epochs": 3, "rampup_epochs": 2}


def test_warm_up_that_is_not_over_follows_the_number_of_epochs() -> None:
    """After one epoch of 2 s, mix epochs are foreseen to take 7 s."""
    assert planned([2.0], 2.0 + 10 * 7.0) == {"epochs": 12, "warmup_epochs": 2, "rampup_epochs": 10}
    assert planned([2.0], 4 * 2.0 + 25 * 7.0) == {"epochs": 30, "warmup_epochs": 5, "rampup_epochs": 16}
    # Two epochs of warm-up are over: it cannot be shorter.
    assert planned([2.0, 2.0], 2.0 + 2 * 7.0) == {"epochs": 5, "warmup_epochs": 3, "rampup_epochs": 2}


def test_a_length_that_the_user_gave_stays() -> None:
    assert planned([2.0], 2 * 2.0 + 9 * 7.0, ["rampup_epochs"]) == {"epochs": 12, "rampup_epochs": 9}
    assert planned([2.0], 2 * 2.0 + 9 * 7.0, []) == {"epochs": 12}


def test_a_phase_that_is_over_stays_as_long_as_it_was_though_a_share_decided_it() -> None:
    """Two fifths of 20 epochs are 8. Nine are over, and any number may follow."""
    for left, more in ((30.0, 10), (60.0, 20), (3.0, 1)):
        job = job_of("robust_history", epochs=20)
        values = plan_again(job, [3.0] * 9, left, 1.0, [], on_cpu=True)
        assert values == {"epochs": 9 + more, "given_epochs": 8}
        s = job.settings.replanned(9, values)
        assert [phase.num_epochs for phase in find_method("robust_history").phases(s)] == [8, 1 + more]
        assert [phase.num_epochs for phase in find_method("robust_history").phases(s.in_force(8))] == [8, 12]
    assert plan_again(job_of("robust_history", epochs=20), [3.0] * 7, 24.0, 1.0, [], on_cpu=True) == {"epochs": 17}


def test_every_phase_is_trained_once_however_late_it_is() -> None:
    assert planned([50.0], -99.0) == {"epochs": 2, "warmup_epochs": 1, "rampup_epochs": 1}
    assert planned([50.0], -99.0, []) == {"epochs": 4}  # three epochs of warm-up are wanted


def test_the_number_of_epochs_has_a_limit() -> None:
    plan = planned([0.001, 0.001], 9999.0)
    assert plan is not None
    assert plan["epochs"] == MAX_EPOCHS


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize(("num_trained", "left"), [(1, 4.0), (3, 2.0), (7, 30.0), (11, 0.0), (16, 9.0)])
def test_finished_epochs_keep_their_phases_in_every_method(name: str, num_trained: int, left: float) -> None:
    job, method = job_of(name), find_method(name)
    values = plan_again(job, [1.0] * num_trained, left, 0.1, LENGTHS, on_cpu=True)
    if values is None:
        return
    s = job.settings.replanned(num_trained, values)
    assert s.epochs >= num_trained
    for epoch in range(num_trained):
        assert phase_at(method.phases(s), epoch).name == phase_at(method.phases(job.settings), epoch).name
    assert sum(phase.num_epochs for phase in method.phases(s)) == s.epochs
    before = {phase.name for phase in method.phases(job.settings) if phase.num_epochs}
    assert {phase.name for phase in method.phases(s) if phase.num_epochs} >= before
    assert replace(s.in_force(0), earlier_plans="") == job.settings


def test_a_budget_counts_from_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    budget, early = Budget.of(2.0), Budget.of(2.0, began=90.0)
    now[0] = 130.0
    assert (budget.left, early.left, budget.minutes) == (90.0, 80.0, 2.0)
    assert near_enough(budget) == pytest.approx(2.4)
    for minutes in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(InputError, match="it must be a number > 0"):
            Budget.of(minutes)
