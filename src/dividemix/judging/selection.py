"""Which epoch is the best, from the metrics alone."""

import math
from collections.abc import Mapping, Sequence
from typing import Any


def best_epoch(rows: Sequence[Mapping[str, Any]]) -> int:
    """The best of the epochs after warm-up, if it is over; without validation samples, the best on the test images.

    On a clean validation set that is the best one, the latest of equals. On samples held out it is the last epoch
    within a standard error of the best one: a few noisy labels tell no more, and the largest of many such accuracies
    is chosen by chance. 0 if nothing was measured.
    """
    held_out = [row for row in rows if "val_acc" in row]
    held_out = [row for row in held_out if row["phase"] == "mix"] or held_out
    if held_out:
        best = max(row["val_acc"] for row in held_out)
        is_clean = held_out[0].get("val_is_clean", False)
        error = 0.0 if is_clean else math.sqrt(best * (100 - best) / held_out[0]["num_val"])
        return max(int(row["epoch"]) for row in held_out if row["val_acc"] >= best - error)
    tested: list[tuple[float, int]] = [(row["test_acc"], -row["epoch"]) for row in rows if row["test_acc"] is not None]
    return -max(tested)[-1] if tested else 0
