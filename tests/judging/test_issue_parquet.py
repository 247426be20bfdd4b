"""Label issues in blocks, as text and as .parquet. Oracle: pyarrow reads back the rows, and one block is the whole."""

import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from dividemix.errors import InputError
from dividemix.judging import issue_parquet, label_issues
from dividemix.judging.label_issues import LabelIssues
from dividemix.judging.odd_samples import find_odd_samples
from dividemix.runs import directory
from dividemix.runs.directory import RunDirectory


@pytest.fixture
def issues() -> LabelIssues:
    """Fifty samples with everything that a sample can have, some near-duplicates among them."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(50, 4)).astype(np.float32)
    vectors[7] = vectors[3]
    return LabelIssues(
        classes=("ant", "bee, or wasp", "=1+1"),
        paths=tuple(f"shard.tar/{i}.jpg" for i in range(50)),
        labels=rng.integers(3, size=50),
        pred_probs=rng.dirichlet(np.ones(3), size=50).astype(np.float32),
        losses=rng.random((2, 50)),
        clean_prob=rng.random((2, 50)),
        odd=find_odd_samples(torch.from_numpy(vectors)),
    )


def test_parquet_has_the_rows(issues: LabelIssues, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(issue_parquet, "_ROWS", 7)
    issues.to_parquet(tmp_path / "a.parquet")
    table = pq.read_table(tmp_path / "a.parquet")
    expected = [{name: None if value == "" else value for name, value in row.items()} for row in issues.rows()]
    assert table.to_pylist() == expected
    assert table.schema.field("duplicate_set").type == "int64"
    assert sum(value is not None for value in table["duplicate_set"].to_pylist()) == 2
    assert pq.ParquetFile(tmp_path / "a.parquet").num_row_groups == 8  # written block by block


def test_blocks_of_lines_are_the_whole_text(issues: LabelIssues, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = issues.to_csv()
    monkeypatch.setattr(label_issues, "_LINES", 7)
    blocks = list(issues.csv_blocks())
    assert len(blocks) == 9
    assert "".join(blocks) == whole


def test_a_run_with_many_samples_also_has_them_as_parquet(
    issues: LabelIssues, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    RunDirectory(tmp_path).write_issues(issues)
    assert not (tmp_path / "label_issues.parquet").exists()
    monkeypatch.setattr(directory, "MANY_LINES", 50)
    monkeypatch.setattr(directory, "_ROWS", 7)
    RunDirectory(tmp_path).write_issues(issues)
    assert pq.read_table(tmp_path / "label_issues.parquet")["index"].to_pylist() == issues.order.tolist()
    assert (tmp_path / "label_issues.csv").read_text() == issues.to_csv()
    np.testing.assert_array_equal(np.load(tmp_path / "pred_probs.npy"), issues.pred_probs[issues.order])


def test_without_pyarrow_a_line_says_what_to_install(
    issues: LabelIssues, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(InputError, match=r"a\.parquet: needs pyarrow: pip install 'dividemix\[parquet\]'"):
        issues.to_parquet(tmp_path / "a.parquet")
    monkeypatch.setattr(directory, "MANY_LINES", 50)
    RunDirectory(tmp_path).write_issues(issues)
    names = {file.name for file in tmp_path.iterdir()}
    assert names == {"label_issues.csv", "near_duplicates.csv", "pred_probs.npy"}
