"""Costs against sums over epochs and a simulation of the workers; a measurement against what must hold of any."""

import dataclasses

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_plan import toy_run

from dividemix.errors import InputError
from dividemix.experiments import cost
from dividemix.experiments.cost import kind_of, makespan, measure_pace
from dividemix.experiments.plans import make_plan
from dividemix.planning.pace import Pace, PhasePace

PHASES = {"warmup": PhasePace(0.01), "train": PhasePace(0.01), "mix": PhasePace(0.002, kept=0.05)}
PACE = Pace(PHASES, evaluate=0.002, num_train=1000, num_test=200)


@pytest.mark.parametrize(("method", "noise"), [("dividemix", 0.5), ("dividemix", 0.0), ("cross_entropy", 0.5)])
def test_seconds_are_the_sum_over_the_epochs(method: str, noise: float) -> None:
    lengths = {"epochs": 7} | ({"warmup_epochs": 3} if method == "dividemix" else {})
    job = toy_run("any", method, noise=f"symmetric:{noise}", **lengths).job
    total = (1000 + 200) * 0.002  # at the end: every label is judged, the kept model is tested
    for epoch in range(7):
        total += 200 * 0.002
        if epoch < 3 or method == "cross_entropy":
            total += 1000 * 0.01
        else:
            total += 1000 * 0.002 + 1000 * (1 - noise) * 0.05
    assert PACE.seconds(job) == pytest.approx(total)


def test_balanced_epochs_cost_their_own_samples() -> None:
    """30 steps of 2 x 8 samples in each of 3 epochs of warm-up; 30 x 8 divided in each of 4 later ones."""
    job = toy_run("any", noise="symmetric:0.5", epochs=7, warmup_epochs=3, balanced_batches=30, batch_size=8).job
    total = 7 * 200 * 0.002 + 3 * 480 * 0.01 + 4 * (240 * 0.002 + 120 * 0.05) + 1200 * 0.002
    assert PACE.seconds(job) == pytest.approx(total)


def test_noise_of_unknown_rate_keeps_85_percent() -> None:
    known = toy_run("any", noise="symmetric:0.15", epochs=9).job
    unknown = dataclasses.replace(known, noise="none")
    assert PACE.seconds(unknown) == pytest.approx(PACE.seconds(known))


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.integers(1, 3))
def test_makespan_is_that_of_workers_simulated_second_by_second(seconds: list[int], num_workers: int) -> None:
    waiting, left, clock = list(seconds), [0] * num_workers, -1
    while waiting or any(left):
        left = [max(0, rest - 1) for rest in left]
        clock += 1
        for worker in range(num_workers):
            if left[worker] == 0 and waiting:
                left[worker] = waiting.pop(0)
    assert makespan([float(value) for value in seconds], num_workers) == clock


def test_runs_that_differ_in_noise_seed_or_length_are_of_one_kind() -> None:
    kinds = {kind_of(run.job) for run in make_plan("table5", "mini", num_seeds=3).runs}
    assert len(kinds) == 4 - 1  # two nets, one net, one view; refinement costs next to nothing
    assert len({kind_of(run.job) for run in make_plan("table1", "mini").runs}) == 9 + 1  # rows; one has two variants


@pytest.mark.parametrize("method", ["dividemix", "cross_entropy"])
def test_a_measurement_counts_the_images_and_takes_time(method: str) -> None:
    before = torch.get_num_threads()
    pace = measure_pace(toy_run("any", method=method).job, num_threads=before + 1)
    assert torch.get_num_threads() == before
    assert (pace.num_train, pace.num_test) == (60, 2000)
    assert pace.evaluate > 0
    assert pace.phases.keys() == ({"warmup", "mix"} if method == "dividemix" else {"train"})
    assert all(phase.each > 0 for phase in pace.phases.values())


def test_a_measurement_has_the_threads_of_the_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error leaves as many threads as there were, too."""
    before, seen = torch.get_num_threads(), []

    def fail(job: object) -> None:
        seen.append(torch.get_num_threads())
        raise InputError("no such data")

    monkeypatch.setattr(cost, "measure", fail)
    with pytest.raises(InputError, match="no such data"):
        measure_pace(toy_run("any").job, num_threads=before + 1)
    assert seen == [before + 1]
    assert torch.get_num_threads() == before
