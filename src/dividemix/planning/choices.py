"""Settings that were chosen for the user, each with its reason. No torch import."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Choice:
    """A setting, its value, and the reason."""

    name: str
    value: Any
    reason: str


def as_settings(choices: Iterable[Choice]) -> dict[str, Any]:
    """The chosen values by name."""
    return {choice.name: choice.value for choice in choices}
