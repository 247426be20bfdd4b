"""Sentences that a user should read before trusting the flags of a run. True labels are not needed."""

from collections.abc import Sequence

from dividemix.errors import counted
from dividemix.judging.label_issues import LabelIssues

_FAR = 10.0  # percentage points below the agreement of a perfect model
_NAMED = 5  # classes that are named; of the others only the number is given
_FEW = 1000  # samples: with fewer, and classes that overlap, flags are surer than they should be (LOG.md)
_HELP = "Longer training may help, or a pretrained encoder for images and texts."


def cautions(issues: LabelIssues, agreement: float | None) -> list[str]:
    """The sentences, none if nothing is odd.

    `agreement` is the percentage of held-out labels that the kept networks predict; None if a test set tells how good
    they are, or nothing was held out.
    """
    found = []
    if rare := issues.rare_classes:
        found.append(
            f"The networks have seen too few samples of {_listed(rare)}. Such labels cannot be judged, and are not"
            " flagged. Look at them yourself."
        )
    if issues.is_guess:
        found.append(
            "The networks predict held-out labels no better than one class for all samples would. So nothing is"
            f" flagged. {_HELP}"
        )
    elif unlearned := [name for name in issues.unlearned_classes if name not in rare]:
        found.append(
            f"The networks almost never predict {_listed(unlearned)}. So these labels are not flagged. {_HELP}"
        )
    perfect = 100 * (1 - issues.noise_rate)
    if agreement is not None and not issues.is_guess and agreement < perfect - _FAR:
        found.append(
            f"The networks agree with {agreement:.0f} % of the held-out labels. If only the flagged labels were wrong,"
            f" a perfect model would agree with about {perfect:.0f} %. So the networks have not learned the classes"
            f" well, or more labels are wrong than are flagged. {_HELP}"
        )
    if issues.is_label_issue.any() and len(issues.labels) < _FEW:
        number = counted(len(issues.labels), "sample")
        found.append(
            f"There are only {number}. In tests with 300 to 1,000 rows or images, 5 to 7 in 10 flagged labels were"
            " really wrong, where 8 to 9 in 10 were expected. So check each one."
        )
    return found


def _listed(names: Sequence[str]) -> str:
    """How many classes, and the names of the first."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{counted(len(names), 'class')}: {', '.join(names[:_NAMED])}{more}"
