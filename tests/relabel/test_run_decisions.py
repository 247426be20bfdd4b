"""Decisions on a run: what a review stored, and what is accepted because the networks are sure, worked out by hand."""

from pathlib import Path

import pytest

from dividemix.errors import InputError
from dividemix.relabel.corrections import Correction
from dividemix.relabel.run_decisions import decisions_of
from dividemix.runs.reviewed import review_file

ISSUES = """\
index,path,is_label_issue,label_score,given_label,predicted_label,predicted_prob,clean_prob_1,loss_1
4,e.png,True,0.01,cat,dog,0.99,0.1,4
0,a.png,True,0.02,cat,dog,0.95,0.1,3
2,c.png,True,0.2,dog,cat,0.949,0.2,2
1,b.png,False,0.0,dog,cat,0.999,0.6,1
3,d.png,False,0.9,cat,cat,0.9,0.9,0.1
"""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "label_issues.csv").write_text(ISSUES)
    return tmp_path


def facts(decided: list[Correction]) -> list[tuple[int, str, str, str, str]]:
    return [(one.index, one.path, one.given_label, one.new_label, one.action) for one in decided]


def review(run: Path, lines: str) -> None:
    review_file(run).parent.mkdir()
    review_file(run).write_text(f"index,path,given_label,new_label,action\n{lines}")


def test_flagged_labels_with_a_sure_suggestion_are_accepted(run: Path) -> None:
    """At least the probability; labels that are not flagged never."""
    found = facts(decisions_of(run, accept_above=0.95))
    assert found == [(4, "e.png", "cat", "dog", "accept"), (0, "a.png", "cat", "dog", "accept")]


def test_a_decision_of_the_review_is_not_changed(run: Path) -> None:
    review(run, "4,e.png,cat,cat,keep\n2,c.png,dog,,delete\n")
    reviewed = [(4, "e.png", "cat", "cat", "keep"), (2, "c.png", "dog", "", "delete")]
    assert facts(decisions_of(run)) == reviewed
    assert facts(decisions_of(run, accept_above=0)) == [*reviewed, (0, "a.png", "cat", "dog", "accept")]


def test_decisions_that_are_given_replace_the_review(run: Path) -> None:
    review(run, "4,e.png,cat,cat,keep\n")
    given = Correction(where="", index=0, path="a.png", given_label="cat", new_label="", action="skip")
    assert facts(decisions_of(run, [given])) == [(0, "a.png", "cat", "", "skip")]
    assert [one.index for one in decisions_of(run, [given], accept_above=0.9)] == [0, 4, 2]


@pytest.mark.parametrize("number", [-0.1, 1.1, float("nan"), float("inf")])
def test_a_number_that_is_no_probability_is_refused(run: Path, number: float) -> None:
    with pytest.raises(InputError, match="must be a number from 0 to 1"):
        decisions_of(run, accept_above=number)


def test_a_run_without_a_review_needs_a_number(run: Path) -> None:
    with pytest.raises(InputError, match=r"no label was reviewed: use dividemix review .*, or accept_above 0\.95"):
        decisions_of(run)


def test_a_number_above_every_suggestion_is_refused_with_the_surest(run: Path) -> None:
    """A copy without any change would look like a cleaned folder."""
    with pytest.raises(
        InputError, match=r"accept_above is 0\.995: no suggestion .* so sure; the surest has 0\.99; review"
    ):
        decisions_of(run, accept_above=0.995)
    review(run, "4,e.png,cat,cat,keep\n")
    assert [one.index for one in decisions_of(run, accept_above=0.995)] == [4]


def test_without_flags_there_is_nothing_to_accept(run: Path) -> None:
    (run / "label_issues.csv").write_text(ISSUES.replace("True", "False"))
    with pytest.raises(InputError, match="no label is flagged, so there is no suggestion to accept"):
        decisions_of(run, accept_above=0.5)
