"""What comes back from another tool: a sample that `dividemix share` described, and what a person decided on it.

A sample that nobody decided on has no correction. Nothing is guessed: if people disagree, the sample is skipped.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dividemix.data.classes import check_text
from dividemix.errors import InputError, shown
from dividemix.relabel.corrections import Correction

OTHER_DECISIONS = ("delete", "ambiguous")  # decisions that name no class
REMEDY = "give an export of what dividemix share wrote"


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What one person decided: a class, or one of `OTHER_DECISIONS`; neither if the person skipped the sample."""

    label: Any = None
    other: Any = None


def correction(where: str, sample: Mapping[str, Any], decisions: Sequence[Decision]) -> Correction | None:
    """What all people decided on a sample, which has `index`, `path`, `given_label` and `suggested_label`.

    Returns None without a decision. Raises InputError if the sample is not one that was shared, if a class is not a
    text, or if a decision is unknown.
    """
    if not decisions:
        return None
    index, path, given = (sample.get(name) for name in ("index", "path", "given_label"))
    if isinstance(index, str) and index.isascii() and index.isdigit() and len(index) < 19:
        index = int(index)
    if type(index) is not int or index < 0 or not isinstance(path, str) or not isinstance(given, str):
        raise InputError(f"{where}: has no index, path and given_label of a sample: {REMEDY}")
    agreed = all(one == decisions[0] for one in decisions)
    label, other = (decisions[0].label, decisions[0].other) if agreed else (None, None)
    if label is not None and not (isinstance(label, str) and label.strip()):
        raise InputError(f"{where}: the label is {shown(label, 60)}: must be the name of a class")
    if other is not None and other not in OTHER_DECISIONS:
        raise InputError(f"{where}: the decision is {shown(other, 60)}: must be one of {', '.join(OTHER_DECISIONS)}")
    label = "" if label is None or other else label.strip()
    check_text((path, given, label), where)
    if other:
        action = other
    elif not label:
        action = "skip"
    elif label == given:
        action = "keep"
    else:
        action = "accept" if label == sample.get("suggested_label") else "choose"
    return Correction(where=where, index=index, path=path, given_label=given, new_label=label, action=action)


def one_for_each(found: Iterable[Correction | None]) -> list[Correction]:
    """The corrections, without None. Raises InputError if a sample has two."""
    corrections: dict[int, Correction] = {}
    for one in found:
        if one is None:
            continue
        if one.index in corrections:
            raise InputError(f"{one.where}: sample {one.index} occurs twice: remove one of the two")
        corrections[one.index] = one
    return list(corrections.values())


def entry(value: Any, name: str, kind: type, where: str) -> Any:
    """The entry of an object, of a kind; InputError if the value is not an object, or the entry is of another kind."""
    found = value.get(name) if isinstance(value, dict) else None
    if not isinstance(found, kind):
        raise InputError(f"{where}: has no {name}: {REMEDY}")
    return found
