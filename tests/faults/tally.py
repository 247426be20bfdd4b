"""What was tried, and what became of it: a line of the laboratory's table."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Tally:
    """So many attempts of one kind. `ends` counts how those ended that held; `problems` has a line for each other."""

    part: str
    what: str
    num_tried: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def add(self, problem: str, end: str) -> None:
        """Count an attempt: a problem, or how it ended if there is none."""
        self.num_tried += 1
        if problem:
            self.problems.append(problem)
        else:
            self.ends[end] += 1

    @property
    def num_held(self) -> int:
        """How many attempts held."""
        return self.num_tried - len(self.problems)

    @property
    def line(self) -> str:
        """The tally in one line."""
        ends = ", ".join(f"{number} {end}" for end, number in sorted(self.ends.items()))
        return f"{self.part:12} {self.what:28} {self.num_tried:6} tried {self.num_held:6} held   {ends}"


def table(tallies: Sequence[Tally]) -> str:
    """A Markdown table: a line for each part, and one for all."""
    parts = {part: [tally for tally in tallies if tally.part == part] for part in (tally.part for tally in tallies)}
    lines = ["| part | kinds | tried | held | how they ended |", "|---|---|---|---|---|"]
    for part, some in {**parts, "all": list(tallies)}.items():
        ends = sum((tally.ends for tally in some), Counter[str]())
        words = "" if part == "all" else ", ".join(f"{number:,} {end}" for end, number in ends.most_common())
        tried, held = (sum(getattr(tally, name) for tally in some) for name in ("num_tried", "num_held"))
        lines.append(f"| {part} | {len(some)} | {tried:,} | {held:,} | {words} |")
    return "\n".join(lines)
