"""Settings that were chosen for the user, each with its reason; no torch import."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Choice:
    """A setting, its value, and why."""

    name: str
    value: Any
    reason: str


def late_choices(rows: Sequence[dict[str, Any]], kept_epoch: int) -> list[Choice]:
    """What only the training could choose, from its metrics: lambda_u, and the epoch to keep."""
    choices, last, kept = [], rows[-1], rows[kept_epoch - 1]
    if "lambda_u" in last:
        reason = f"in the last epoch, by an estimated noise of {last['noise_rate']:.1%}"
        choices.append(Choice("lambda_u", round(last["lambda_u"], 2), reason))
    if "val_acc" in kept:
        is_clean = kept.get("val_is_clean", False)
        best = "the best epoch" if is_clean else "the last epoch about as good as any"
        images = "clean validation images" if is_clean else "held-out noisy labels"
        reason = f"{best} on {kept['num_val']:,} {images}: {kept['val_acc']:.1f} %"
        choices.append(Choice("kept_epoch", kept_epoch, reason))
    return choices
