"""label_issues.csv read back: the oracle is what LabelIssues wrote."""

from pathlib import Path

import numpy as np
import pytest

from dividemix.errors import InputError
from dividemix.judging.issue_table import read_issue_table
from dividemix.judging.label_issues import LabelIssues

HEADER = "index,path,is_label_issue,label_score,given_label,predicted_label,predicted_prob,clean_prob_1,loss_1\n"
LINE = "3,a.png,True,0.1,cat,dog,0.9,0.2,2.3\n"


def written(folder: Path, num_nets: int) -> LabelIssues:
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), 20).astype(np.float32)
    issues = LabelIssues(
        classes=("=cat", 'do,"g', "-1"),
        paths=tuple(f"@{i}/x, y.png" for i in range(20)),
        labels=np.arange(20) % 3,
        pred_probs=probs,
        losses=rng.random((num_nets, 20)),
        clean_prob=rng.random((num_nets, 20)),
        sample_rows=np.arange(20) * 3,
    )
    (folder / "label_issues.csv").write_text(issues.to_csv(), encoding="utf-8")
    return issues


@pytest.mark.parametrize("num_nets", [1, 2])
def test_what_is_read_is_what_was_written(tmp_path: Path, num_nets: int) -> None:
    issues = written(tmp_path, num_nets)
    for one, row in zip(read_issue_table(tmp_path), issues.rows(), strict=True):
        for name in ("index", "path", "is_label_issue", "given_label", "predicted_label"):
            assert getattr(one, name) == row[name]
        for name in ("label_score", "predicted_prob"):
            assert getattr(one, name) == pytest.approx(row[name], rel=1e-5)
        assert one.clean_prob == pytest.approx([row[f"clean_prob_{k + 1}"] for k in range(num_nets)], rel=1e-5)
        assert one.losses == pytest.approx([row[f"loss_{k + 1}"] for k in range(num_nets)], rel=1e-5)


def test_other_columns_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "label_issues.csv").write_text(HEADER[:-1] + ",is_outlier\n" + LINE[:-1] + ",True\n")
    (one,) = read_issue_table(tmp_path)
    assert (one.index, one.clean_prob, one.losses) == (3, (0.2,), (2.3,))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER.replace("predicted_prob", "p") + LINE, "no column 'predicted_prob'"),
        (HEADER + LINE.replace("True", "yes"), r"line 2: damaged \('yes'\)"),
        (HEADER + LINE.replace("0.9", "1.9"), "line 2: damaged .*not in"),
        (HEADER + LINE.replace("0.9", "nan"), "line 2: damaged .*not in"),
        (HEADER + LINE.replace("0.9", "much"), "line 2: damaged .*'much'"),
        (HEADER + LINE.replace("3,", "-3,", 1), "line 2: damaged .*index is '-3'"),
        (HEADER + LINE + LINE, "line 3: damaged .*sample 3 occurs twice"),
        (HEADER + "3,a.png\n", "line 2: damaged .*2 fields, the header has 9"),
        ("", "empty"),
    ],
)
def test_a_damaged_file_is_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "label_issues.csv").write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        read_issue_table(tmp_path)
    assert "\n" not in str(caught.value)


def test_no_run_and_a_run_that_is_not_finished(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a run directory"):
        read_issue_table(tmp_path)
    (tmp_path / "config.yaml").write_text("format: 2\n")
    with pytest.raises(InputError, match="not finished: train it to its end first"):
        read_issue_table(tmp_path)
