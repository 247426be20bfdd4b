"""Plans that a training has replaced, as the text of a setting. No torch import.

In "3: epochs=17 warmup_epochs=3; 5: epochs=15" the first three epochs were trained with epochs 17 and warmup_epochs 3,
the next two with epochs 15.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from dividemix.errors import InputError, shown

_PLAN = re.compile(r"(\d{1,9}):((?: [a-z_]+=\d{1,9})+)")


class EarlierPlan(NamedTuple):
    """Settings that were in force until so many epochs were trained."""

    until: int
    values: Mapping[str, int]


@lru_cache(maxsize=64)
def parse_plans(text: str) -> tuple[EarlierPlan, ...]:
    """The plans in a text, in order. Raises InputError unless it has the form, and each plan ends before its epochs."""
    plans: list[EarlierPlan] = []
    for words in text.split("; ") if text else ():
        found = _PLAN.fullmatch(words)
        pairs = [pair.split("=") for pair in found[2].split()] if found else []
        values = {name: int(value) for name, value in pairs}
        begin = plans[-1].until if plans else 0
        if not found or "epochs" not in values or not begin < int(found[1]) <= values["epochs"]:
            raise InputError(
                f"earlier_plans is {shown(text)}: it must be the text that a run with minutes wrote to its config.yaml"
            )
        plans.append(EarlierPlan(int(found[1]), values))
    return tuple(plans)


def plans_text(plans: Iterable[EarlierPlan]) -> str:
    """The text of the plans."""
    each = ((plan.until, " ".join(f"{name}={value}" for name, value in plan.values.items())) for plan in plans)
    return "; ".join(f"{until}: {values}" for until, values in each)
