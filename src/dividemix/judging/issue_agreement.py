"""How far two runs agree about the labels of the samples that both have judged."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike

from dividemix.judging.issue_table import Issue


class IssueAgreement(TypedDict):
    """The agreement of two runs, over the samples that both have, with the same given label."""

    num_common: int  # samples that both runs have
    num_same_label: int  # of these, with the same given label in both; all that follows is over them
    num_both: int  # flagged by both runs
    num_first: int  # flagged by the first run alone
    num_second: int  # flagged by the second run alone
    overlap: float | None  # of the flags: both / either (Jaccard); None without any flag
    rank_correlation: float | None  # Spearman's, of label_score; None if one run gives all samples the same score
    same_suggestion: float | None  # share of the samples that both flag for which both suggest the same label


def keyed(issues: Sequence[Issue], *, by_path: bool) -> dict[str | int, Issue]:
    """The issues by path or by index."""
    return {issue.path if by_path else issue.index: issue for issue in issues}


def have_paths(tables: Sequence[Sequence[Issue]]) -> bool:
    """Whether the samples of all tables are known by different paths; else they are known by their index."""
    return all(len({issue.path for issue in issues} - {""}) == len(issues) for issues in tables)


def agreement(first: Sequence[Issue], second: Sequence[Issue]) -> IssueAgreement:
    """The agreement of two tables of issues, whose samples are matched by path, or by index without paths."""
    by_path = have_paths((first, second))
    a, b = keyed(first, by_path=by_path), keyed(second, by_path=by_path)
    common = [(a[key], b[key]) for key in a if key in b]
    same = [(one, other) for one, other in common if one.given_label == other.given_label]
    flags = Counter((one.is_label_issue, other.is_label_issue) for one, other in same)
    both, num_either = flags[True, True], len(same) - flags[False, False]
    suggestions = [x.predicted_label == y.predicted_label for x, y in same if x.is_label_issue and y.is_label_issue]
    return {
        "num_common": len(common),
        "num_same_label": len(same),
        "num_both": both,
        "num_first": flags[True, False],
        "num_second": flags[False, True],
        "overlap": both / num_either if num_either else None,
        "rank_correlation": rank_correlation([x.label_score for x, _ in same], [y.label_score for _, y in same]),
        "same_suggestion": sum(suggestions) / both if both else None,
    }


def flagged_by(tables: Sequence[Sequence[Issue]]) -> list[int]:
    """How many samples that all tables have, with the same given label, are flagged by 0, 1, ... of them."""
    by_path = have_paths(tables)
    each = [keyed(issues, by_path=by_path) for issues in tables]
    counts = [0] * (len(tables) + 1)
    for key in set.intersection(*map(set, each)):
        if len({issues[key].given_label for issues in each}) == 1:
            counts[sum(issues[key].is_label_issue for issues in each)] += 1
    return counts


def noise_by_class(issues: Sequence[Issue]) -> Mapping[str, float]:
    """For each given label the share of its samples that are flagged."""
    given = Counter(issue.given_label for issue in issues)
    flagged = Counter(issue.given_label for issue in issues if issue.is_label_issue)
    return {label: flagged[label] / given[label] for label in sorted(given)}


def rank_correlation(first: ArrayLike, second: ArrayLike) -> float | None:
    """Spearman's correlation: Pearson's, of the ranks, where ties share their mean; None if one has no variance."""
    ranks = []
    for values in (first, second):
        _, position, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
        ranks.append((np.cumsum(counts) - (counts - 1) / 2)[position])
    if any(len(np.unique(one)) < 2 for one in ranks):
        return None
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])
