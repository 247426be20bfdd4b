"""Figures of runs against slow, obvious loops written from Section 4.2, and mean and deviation against numpy."""

import numpy as np
import pytest
from epoch_rows import as_rows

from dividemix.experiments.results import Measure, over_seeds
from dividemix.judging.records import EpochRow

# Runs shorter than the ten epochs of "last", as long, and longer.
EACH_LENGTH = pytest.mark.parametrize(
    "accuracies", [np.random.default_rng(length).uniform(0, 100, length).tolist() for length in (1, 2, 9, 10, 11, 40)]
)


def rows_of(accuracies: list[float]) -> list[EpochRow]:
    rows = [
        {"epoch": epoch + 1, "phase": "mix", "test_acc": value, "test_acc_by_net": [value / 2, value / 4]}
        for epoch, value in enumerate(accuracies)
    ]
    return as_rows(rows)


def slow_best(accuracies: list[float]) -> float:
    """'the best test accuracy across all epochs'."""
    best = -1.0
    for value in accuracies:
        if value > best:
            best = value
    return best


def slow_last(accuracies: list[float]) -> float:
    """'the averaged test accuracy over the last 10 epochs'; all of them where there are fewer."""
    total, count = 0.0, 0
    for epoch in range(len(accuracies) - 1, -1, -1):
        if count < 10:
            total += accuracies[epoch]
            count += 1
    return total / count


@EACH_LENGTH
def test_best_and_last_are_as_the_paper_defines_them(accuracies: list[float]) -> None:
    rows = rows_of(accuracies)
    assert Measure("best", "test_acc").of(rows) == slow_best(accuracies)
    assert Measure("last", "test_acc").of(rows) == pytest.approx(slow_last(accuracies))


def test_last_does_not_average_over_a_stage_that_ended() -> None:
    """Five epochs of a second stage after five of a first one, whose net was another."""
    rows = as_rows(
        [{"phase": phase, "test_acc": value} for phase, value in [("first", 10.0)] * 5 + [("second", 60.0)] * 5]
    )
    assert Measure("last", "test_acc").of(rows) == 60.0
    assert Measure("best", "test_acc").of(rows) == 60.0


@EACH_LENGTH
def test_theta_1_alone_is_read_off_its_own_accuracies(accuracies: list[float]) -> None:
    rows = rows_of(accuracies)
    assert Measure("best", "test_acc_by_net.0").of(rows) == slow_best([value / 2 for value in accuracies])
    assert Measure("last", "test_acc_by_net.1").of(rows) == pytest.approx(slow_last(accuracies) / 4)


@pytest.mark.parametrize("num_seeds", [2, 3, 10])
def test_mean_and_sample_deviation_over_seeds(num_seeds: int) -> None:
    values = np.random.default_rng(num_seeds).uniform(0, 100, num_seeds).tolist()
    figure = over_seeds(values)
    assert figure is not None
    assert figure.num_seeds == len(values)
    assert figure.mean == pytest.approx(np.mean(values), rel=1e-12)
    assert figure.std == pytest.approx(np.std(values, ddof=1), rel=1e-12)


def test_one_seed_has_no_deviation_and_none_no_figure() -> None:
    figure = over_seeds([81.5])
    assert figure is not None
    assert (figure.mean, figure.std, figure.num_seeds) == (81.5, None, 1)
    assert over_seeds([]) is None


def test_what_the_rows_do_not_have_is_none() -> None:
    rows = as_rows([{"epoch": epoch, "phase": "mix", "test_acc": None} for epoch in (1, 2)])
    assert Measure("best", "test_acc").of(rows) is None
    assert Measure("last", "test_acc").of(rows) is None
    assert Measure("best", "test_acc_by_net.0").of(rows_of([50.0])[:0]) is None
    assert Measure("best", "test_acc_by_net.7").of(rows_of([50.0])) is None
    assert Measure("selected", "test_acc").of(rows) is None
    assert Measure("mean", "profile.co_divide", phase="mix").of(rows) is None


def test_the_selected_epoch_is_the_one_that_validates_best() -> None:
    rows = rows_of([70.0, 90.0, 75.0, 80.0])
    for row, validated in zip(rows, (66.0, 61.0, 65.0, 65.0), strict=True):
        row.update({"selects": True, "val_acc": validated, "num_val": 100, "val_is_clean": True})
    rows[0]["selects"] = False  # the model of a warm-up epoch is not kept
    assert Measure("selected", "test_acc").of(rows) == 80.0
    for row in rows:  # unless there is nothing else, as in ordinary training
        row["selects"] = False
    assert Measure("selected", "test_acc").of(rows) == 70.0


def test_times_are_the_sum_of_all_epochs_and_the_mean_of_those_after_warm_up() -> None:
    parts = [
        {"phase": "warmup", "seconds": 1800.0, "profile": {"forward_backward": 1000.0}},
        {"phase": "mix", "seconds": 3600.0, "profile": {"co_divide": 2.0, "forward_backward": 10.0}},
        {"phase": "mix", "seconds": 5400.0, "profile": {"co_divide": 4.0, "forward_backward": 20.0}},
    ]
    rows = as_rows(parts)
    assert Measure("hours", "seconds").of(rows) == pytest.approx(3.0)
    assert Measure("mean", "profile.co_divide", phase="mix").of(rows) == pytest.approx(3.0)
    assert Measure("mean", "profile.forward_backward", phase="mix").of(rows) == pytest.approx(15.0)
    assert Measure("mean", "profile.forward_backward", phase="warmup").of(rows) == pytest.approx(1000.0)
    assert Measure("mean", "seconds").of(rows) == pytest.approx(3600.0)
