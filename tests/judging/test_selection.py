"""The epoch that a run keeps, against a loop over its rows."""

import numpy as np
import pytest
from toys import epoch_row

from dividemix.experiments.results import Measure
from dividemix.judging.records import EpochRow
from dividemix.judging.selection import best_epoch, late_choices
from dividemix.planning.choices import Choice


def rows_of(accuracies: list[float], *, num_warmup: int, clean: bool, num_val: int = 400) -> list[EpochRow]:
    """Epochs with these accuracies on validation samples; warm-up epochs come first and are not to be kept."""
    about_val = {"num_val": num_val} | ({"val_is_clean": True} if clean else {})
    return [
        epoch_row(i + 1, selects=i >= num_warmup, test_acc=float(i), val_acc=accuracy, **about_val)
        for i, accuracy in enumerate(accuracies)
    ]


@pytest.mark.parametrize("num_warmup", [0, 1, 5, 8])
@pytest.mark.parametrize("seed", range(5))
def test_a_clean_validation_set_chooses_its_best_epoch_the_latest_of_equals(seed: int, num_warmup: int) -> None:
    """Of the epochs after warm-up, if there are any; the table of the experiments reads that same epoch."""
    accuracies = np.random.default_rng(seed).integers(70, 75, 8).astype(float).tolist()
    rows = rows_of(accuracies, num_warmup=num_warmup, clean=True)
    best = 0
    for i in range(num_warmup if num_warmup < 8 else 0, 8):
        if best == 0 or accuracies[i] >= accuracies[best - 1]:
            best = i + 1
    assert best_epoch(rows) == best
    assert Measure("selected", "test_acc").of(rows) == best - 1


def test_noisy_samples_held_out_choose_the_last_within_a_standard_error() -> None:
    accuracies = [60.0, 80.0, 79.0, 77.0]  # the error of 80 % on 400 samples is 2
    assert best_epoch(rows_of(accuracies, num_warmup=1, clean=False)) == 3
    assert best_epoch(rows_of(accuracies, num_warmup=1, clean=True)) == 2


@pytest.mark.parametrize(
    ("accuracies", "kept"),
    [
        ([90.0, 20.0, 60.0, 56.0, 40.0], 4),  # the standard error of 60 % of 100 samples is 4.9 %; warm-up is not kept
        ([0.0, 0.0, 60.0, 59.0, 58.0], 5),
        ([0.0, 0.0, 60.0, 50.0, 50.0], 3),
        ([0.0, 0.0, 50.0, 60.0, 60.0], 5),
    ],
)
def test_the_last_of_the_epochs_that_are_about_equal_is_kept(accuracies: list[float], kept: int) -> None:
    assert best_epoch(rows_of(accuracies, num_warmup=2, clean=False, num_val=100)) == kept


@pytest.mark.parametrize("names", [("warmup", "mix"), ("train", "train")])
def test_the_name_of_a_phase_decides_nothing(names: tuple[str, str]) -> None:
    rows = rows_of([90.0, 60.0, 50.0], num_warmup=1, clean=True)
    for row in rows:
        row["phase"] = names[row["selects"]]
    assert best_epoch(rows) == 2


@pytest.mark.parametrize(
    ("is_clean", "reason"),
    [
        (False, "the last epoch about as good as any on 1,000 held-out noisy labels: 70.0 %"),
        (True, "the best epoch on 1,000 clean validation images: 70.0 %"),
    ],
)
def test_the_kept_epoch_has_its_reason(is_clean: bool, reason: str) -> None:
    (choice,) = late_choices(rows_of([70.0], num_warmup=0, clean=is_clean, num_val=1000), 1, None)
    assert choice == Choice("kept_epoch", 1, reason)


def test_lambda_u_has_its_reason_where_the_noise_chose_it() -> None:
    rows = [epoch_row(1), epoch_row(2, figures={"lambda_u": 3.1, "lambda_u_full": 12.345, "noise_rate": 0.375})]
    reason = "in the last epoch, by an estimated noise of 37.5%"
    assert late_choices(rows, 2, 25.0) == [Choice("lambda_u", 12.35, reason)]
    assert late_choices([epoch_row(1, figures={"lambda_u": 25.0})], 1, 25.0) == []
    as_it_was_set = {"lambda_u": 4.5, "lambda_u_full": 9.0, "noise_rate": 0.3}
    assert late_choices([epoch_row(1, figures=as_it_was_set)], 1, 9.0) == []
