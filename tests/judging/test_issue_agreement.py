"""The agreement of two runs' label issues, against sets, slow loops and scipy."""

from itertools import pairwise

import numpy as np
import pytest

from dividemix.judging.issue_agreement import agreement, flagged_by, noise_by_class, rank_correlation
from dividemix.judging.issue_table import Issue


def issue(index: int, flag: bool, score: float, given: str = "a", suggested: str = "b", path: str = "") -> Issue:
    return Issue(
        index=index,
        path=path,
        is_label_issue=flag,
        label_score=score,
        given_label=given,
        predicted_label=suggested,
        predicted_prob=0.5,
        clean_prob=(0.5,),
        losses=(1.0,),
    )


def drawn(seed: int, size: int, *, with_paths: bool) -> list[Issue]:
    """Random issues of some of 60 samples; their order differs from that of their indices."""
    rng = np.random.default_rng(seed)
    return [
        issue(
            int(i) if not with_paths else 1000 * seed + int(i),  # positions differ where paths tell the sample
            bool(rng.random() < 0.4),
            float(rng.integers(0, 12) / 12),  # with ties
            given="ab"[int(rng.random() < 0.1)],
            suggested="xyz"[int(rng.integers(3))],
            path=f"{i}.png" if with_paths else "",
        )
        for i in rng.permutation(60)[:size]
    ]


@pytest.mark.parametrize("with_paths", [False, True])
def test_agreement_is_that_of_sets_and_of_scipy(with_paths: bool) -> None:
    stats = pytest.importorskip("scipy.stats")
    first, second = drawn(1, 50, with_paths=with_paths), drawn(2, 45, with_paths=with_paths)

    def key(one: Issue) -> str | int:
        return one.path if with_paths else one.index

    common = [(a, b) for a in first for b in second if key(a) == key(b)]
    same = [(a, b) for a, b in common if a.given_label == b.given_label]
    flagged = [{key(pair[side]) for pair in same if pair[side].is_label_issue} for side in (0, 1)]
    both = flagged[0] & flagged[1]
    found = agreement(first, second)
    assert 20 < found["num_same_label"] == len(same) < found["num_common"] == len(common)
    assert (found["num_both"], found["num_first"], found["num_second"]) == (
        len(both),
        len(flagged[0] - flagged[1]),
        len(flagged[1] - flagged[0]),
    )
    assert found["overlap"] == pytest.approx(len(both) / len(flagged[0] | flagged[1]))
    expected = stats.spearmanr([a.label_score for a, _ in same], [b.label_score for _, b in same]).statistic
    assert found["rank_correlation"] == pytest.approx(expected, abs=1e-12)
    equal = [a.predicted_label == b.predicted_label for a, b in same if key(a) in both]
    assert found["same_suggestion"] == pytest.approx(sum(equal) / len(equal))


def test_a_run_agrees_with_itself() -> None:
    table = drawn(3, 40, with_paths=False)
    found = agreement(table, table[::-1])
    assert (found["overlap"], found["same_suggestion"], found["num_first"], found["num_second"]) == (1, 1, 0, 0)
    assert found["rank_correlation"] == pytest.approx(1)


def test_nothing_in_common_is_no_agreement_and_no_error() -> None:
    found = agreement([issue(1, True, 0.1)], [issue(2, True, 0.1)])
    assert found["num_common"] == 0
    assert (found["overlap"], found["rank_correlation"], found["same_suggestion"]) == (None, None, None)


def test_paths_that_occur_twice_are_no_names() -> None:
    """Then the index is the name, as in data that lists an image twice."""
    first = [issue(0, True, 0.1, path="x"), issue(1, False, 0.9, path="x")]
    assert agreement(first, first)["num_common"] == 2


@pytest.mark.parametrize("values", [([1, 1, 1], [1, 2, 3]), ([], []), ([4], [5])])
def test_without_variance_there_is_no_correlation(values: tuple[list[float], list[float]]) -> None:
    assert rank_correlation(*values) is None


def test_flags_are_counted_over_samples_that_all_runs_have_with_one_label() -> None:
    a = [issue(0, True, 0), issue(1, True, 0), issue(2, False, 1), issue(3, True, 0)]
    b = [issue(0, True, 0), issue(1, False, 0), issue(2, False, 1), issue(3, True, 0, given="z")]
    c = [issue(0, True, 0), issue(1, False, 0), issue(2, False, 1), issue(3, True, 0), issue(9, True, 0)]
    assert flagged_by([a, b, c]) == [1, 1, 0, 1]


def test_noise_by_class_is_a_share_of_each_given_label() -> None:
    table = [issue(0, True, 0, "b"), issue(1, False, 1, "b"), issue(2, False, 1, "a"), issue(3, True, 0, "b")]
    shares = noise_by_class(table)
    assert shares == {"a": 0.0, "b": pytest.approx(2 / 3)}
    assert all(one <= other for one, other in pairwise(shares))
