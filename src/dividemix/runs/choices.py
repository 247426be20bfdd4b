"""Settings that were chosen for the user, each with its reason; no torch import."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Choice:
    """A setting, its value, and why."""

    name: str
    value: Any
    reason: str
