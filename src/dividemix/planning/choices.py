"""Settings that were chosen for the user, each with its reason. No torch import."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

# The settings that planning/defaults.py chooses, for which --help shows no default; and those that it seldom chooses.
CHOSEN = (
    *("net", "net_width", "epochs", "warmup_epochs", "rampup_epochs", "batch_size", "lr", "holdout"),
    *("crop_padding", "crop_border", "cutout", "image_size"),
)
SELDOM_CHOSEN = ("test_epochs", "head_epochs", "lambda_r", "precision", "compile")

INSTEAD = "instead of"  # begins the reason of a choice that a person did not ask for, and may not want


@dataclass(frozen=True)
class Choice:
    """A setting, its value, and the reason."""

    name: str
    value: Any
    reason: str

    def __str__(self) -> str:
        """The line that is printed before the training."""
        line = f"{self.name} {self.value}: {self.reason}"
        return f"warning: {line}" if self.reason.startswith(INSTEAD) else line


def as_settings(choices: Iterable[Choice]) -> dict[str, Any]:
    """The chosen values by name."""
    return {choice.name: choice.value for choice in choices}
