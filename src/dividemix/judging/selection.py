"""Which epoch is the best, from the metrics alone. No torch import."""

import math
from collections.abc import Sequence

from dividemix.judging.records import EpochRow
from dividemix.planning.choices import Choice


def best_epoch(rows: Sequence[EpochRow]) -> int:
    """The best epoch of those that may be kept; without validation samples, the best on the test images; else 0.

    On clean validation images it is the most accurate epoch, the latest of equal ones. On held-out samples it is the
    last epoch within a standard error of the most accurate one: noisy labels cannot separate these epochs, and the
    largest of many accuracies is partly chance.
    """
    held_out = [row for row in rows if "val_acc" in row]
    held_out = [row for row in held_out if row["selects"]] or held_out
    if held_out:
        best = max(row["val_acc"] for row in held_out)
        is_clean = held_out[0].get("val_is_clean", False)
        error = 0.0 if is_clean else math.sqrt(best * (100 - best) / held_out[0]["num_val"])
        return max(row["epoch"] for row in held_out if row["val_acc"] >= best - error)
    tested = [(row["test_acc"], -row["epoch"]) for row in rows if row["test_acc"] is not None]
    return -max(tested)[-1] if tested else 0


def late_choices(rows: Sequence[EpochRow], kept_epoch: int, lambda_u: float | None) -> list[Choice]:
    """The choices that training made, from its metrics: lambda_u and the epoch to keep."""
    choices, figures, kept = [], rows[-1]["figures"], rows[kept_epoch - 1]
    if "noise_rate" in figures and figures.get("lambda_u_full", lambda_u) != lambda_u:
        reason = f"in the last epoch, by an estimated noise of {figures['noise_rate']:.1%}"
        choices.append(Choice("lambda_u", round(figures["lambda_u_full"], 2), reason))
    if "val_acc" in kept:
        is_clean = kept.get("val_is_clean", False)
        best = "the best epoch" if is_clean else "the last epoch about as good as any"
        images = "clean validation images" if is_clean else "held-out noisy labels"
        reason = f"{best} on {kept['num_val']:,} {images}: {kept['val_acc']:.1f} %"
        choices.append(Choice("kept_epoch", kept_epoch, reason))
    return choices
