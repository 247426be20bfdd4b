"""The epoch that a run keeps, against a loop over its rows."""

from typing import Any

import numpy as np
import pytest

from dividemix.experiments.results import Measure
from dividemix.judging.selection import best_epoch


def rows_of(accuracies: list[float], *, num_warmup: int, clean: bool) -> list[dict[str, Any]]:
    return [
        {"epoch": i + 1, "phase": "warmup" if i < num_warmup else "mix", "test_acc": float(i), "val_acc": accuracy}
        | {"num_val": 400}
        | ({"val_is_clean": True} if clean else {})
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
