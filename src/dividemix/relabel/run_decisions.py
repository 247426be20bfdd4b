"""The decisions on a run: those of its review, and suggestions that are accepted because the networks are sure."""

from collections.abc import Sequence
from pathlib import Path

from dividemix.errors import InputError
from dividemix.judging.issue_table import Issue, read_issue_table
from dividemix.relabel.corrections import Correction, read_corrections
from dividemix.runs.reviewed import review_file


def decisions_of(
    run: Path, decided: Sequence[Correction] | None = None, *, accept_above: float | None = None
) -> list[Correction]:
    """The decisions on a run: `decided` or, without them, those of its review.

    With `accept_above`, also the suggestion for each flagged label without a decision whose probability is at least
    this. Raises InputError if there is no run, no review and nothing to accept, or the number is not in [0, 1].
    """
    if accept_above is not None and not 0 <= accept_above <= 1:
        raise InputError(f"accept_above is {accept_above:g}: must be a number from 0 to 1, such as 0.95")
    issues = read_issue_table(run)
    file = review_file(run)
    if decided is None and not file.is_file() and accept_above is None:
        raise InputError(f"{run}: no label was reviewed: use dividemix review {run}{_or_accept(issues)}")
    if decided is None:
        decided = read_corrections(file) if file.is_file() else []
    if accept_above is None:
        return list(decided)
    known = {one.index for one in decided}
    accepted = [
        Correction(
            where=f"{run / 'label_issues.csv'}: sample {one.index}",
            index=one.index,
            path=one.path,
            given_label=one.given_label,
            new_label=one.predicted_label,
            action="accept",
        )
        for one in issues
        if one.is_label_issue and one.predicted_prob >= accept_above and one.index not in known
    ]
    if not decided and not accepted:
        surest = max((one.predicted_prob for one in issues if one.is_label_issue), default=None)
        if surest is None:
            raise InputError(f"{run}: no label is flagged, so there is no suggestion to accept")
        least = f"the surest has {surest:.2f}; review them: dividemix review {run}{_or_accept(issues)}"
        raise InputError(f"accept_above is {accept_above:g}: no suggestion for a flagged label is so sure; {least}")
    return [*decided, *accepted]


def _or_accept(issues: Sequence[Issue]) -> str:
    """A number for accept_above that accepts some suggestions, and how many; nothing if no label is flagged."""
    probs = [one.predicted_prob for one in issues if one.is_label_issue]
    if not probs:
        return ""
    above = next((number for number in (0.95, 0.9, 0.8, 0.7, 0.6, 0.5) if max(probs) >= number), 0.0)
    return f", or accept_above {above:g} (accepts {sum(one >= above for one in probs):,} of {len(probs):,} suggestions)"
