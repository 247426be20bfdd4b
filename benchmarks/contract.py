"""What a benchmark is given and what it gives back."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Options:
    """What the command line asked for. `quick`: small sizes, to see that all of it runs; its ratios mean little."""

    quick: bool
    cifar: Path | None


@dataclass(frozen=True)
class Row:
    """A line of the table. `ratio` is how many times as fast as the plain implementation, or what `what` says."""

    what: str
    plain: str = ""
    ours: str = ""
    ratio: str = ""
    goal: str = ""


@dataclass(frozen=True)
class Outcome:
    """A benchmark's lines and its figures by name, for the flat JSON object."""

    rows: list[Row]
    figures: dict[str, float]
