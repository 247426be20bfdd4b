"""Tables whose rows are the samples. The oracle is what was written, or pandas, which reads the same file."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dividemix.data.column_types import RowColumns
from dividemix.data.readers import read_source
from dividemix.data.readers.column_files import read_columns
from dividemix.data.readers.row_table import read_row_table, rows_like
from dividemix.data.readers.table_columns import TableColumns
from dividemix.data.source import Source
from dividemix.data.table_rows import is_numeric, rows_fingerprint
from dividemix.errors import InputError

TABLE = """\
id,age,town,risk
c1,31,Bonn,low
c2,?,Ulm,high
c3,45.5,,low
c4,12,Ulm,high
"""


def named(target: str = "risk", **lists: Any) -> RowColumns:
    """The columns as the command line names them."""
    given = {"key": None, "numeric": None, "categorical": None, "drop": None} | lists
    found = RowColumns.of(target, **given)
    assert found is not None
    return found


def read(tmp_path: Path, text: str = TABLE, *, name: str = "table.csv", **lists: Any) -> Source:
    """The source of a table with this text."""
    (tmp_path / name).write_text(text)
    return read_row_table(tmp_path / name, named(**lists))


def fails(tmp_path: Path, text: str = TABLE, **lists: Any) -> str:
    """The one line of the error."""
    with pytest.raises(InputError) as caught:
        read(tmp_path, text, **lists)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_columns_are_numbers_or_categories_by_what_they_have(tmp_path: Path) -> None:
    source = read(tmp_path, key="id")
    rows = source.train_samples
    assert isinstance(rows, np.ndarray)
    assert rows.dtype.names == ("age", "town")
    np.testing.assert_array_equal(rows["age"], [31, np.nan, 45.5, 12])
    assert rows["town"].tolist() == ["Bonn", "Ulm", None, "Ulm"]
    assert source.kind == "rows"
    assert source.classes == ("high", "low")
    assert source.train_labels.tolist() == [1, 0, 1, 0]
    assert source.paths == ("c1", "c2", "c3", "c4")


def test_the_user_decides_against_what_is_inferred(tmp_path: Path) -> None:
    rows = read(tmp_path, categorical="age", drop="id,town").train_samples
    assert isinstance(rows, np.ndarray)
    assert rows["age"].tolist() == ["31", None, "45.5", "12"]
    assert rows.dtype.names == ("age",)


def test_all_kinds_of_files_give_the_same_rows(tmp_path: Path) -> None:
    read(tmp_path)
    frame = pd.read_csv(tmp_path / "table.csv", na_values="?")
    frame.to_parquet(tmp_path / "table.parquet")
    frame.to_csv(tmp_path / "table.tsv", sep="\t", index=False)
    lines = [json.dumps({k: None if v != v else v for k, v in row.items()}) for row in frame.to_dict("records")]
    (tmp_path / "table.jsonl").write_text("\n".join(lines))
    prints = {
        rows_fingerprint(np.asarray(read_row_table(tmp_path / f"table{end}", named()).train_samples)) for end in ENDS
    }
    assert len(prints) == 1


ENDS = (".csv", ".tsv", ".parquet", ".jsonl")


def test_a_column_that_names_or_numbers_the_rows_is_not_used(tmp_path: Path) -> None:
    lines = [f"{i},person {i},{i % 7},{'ab'[i % 2]}" for i in range(100)]
    source = read(tmp_path, "number,name,x,risk\n" + "\n".join(lines))
    assert source.train_samples.dtype.names == ("x",)
    assert [note.split("'")[1] for note in source.notes] == ["number", "name"]
    kept = read(tmp_path, "number,name,x,risk\n" + "\n".join(lines), numeric="number", categorical="name")
    assert kept.train_samples.dtype.names == ("number", "name", "x")


def test_a_nearly_numeric_column_is_reported(tmp_path: Path) -> None:
    cells = ["5"] * 30 + ["five"]
    source = read(tmp_path, "x,y,risk\n" + "".join(f"{c},{i % 3},{'ab'[i % 2]}\n" for i, c in enumerate(cells)))
    assert not is_numeric(np.asarray(source.train_samples), "x")
    assert "1 of 31 values are not numbers, such as 'five'" in source.notes[0]


def test_split_and_true_label_mean_what_they_mean_elsewhere(tmp_path: Path) -> None:
    text = "x,risk,true_label,split\n1,a,b,train\n2,b,b,train\n3,a,a,test\n4,,a,train\n"
    source = read(tmp_path, text)
    assert source.true_labels is not None
    assert source.true_labels.tolist() == [1, 1]
    assert source.test_samples is not None
    assert source.test_samples["x"].tolist() == [3]
    assert [one.path for one in source.skipped] == ["line 5"]
    assert source.rows.tolist() == [0, 1]


def test_rows_are_the_same_data_wherever_minus_zero_or_nan_come_from(tmp_path: Path) -> None:
    one, two = np.zeros((2, 2), dtype=[("x", np.float64)])
    one["x"], two["x"] = [0.0, np.nan], [-0.0, -np.nan]
    assert rows_fingerprint(one) == rows_fingerprint(two)
    two["x"][0] = 1e-300
    assert rows_fingerprint(one) != rows_fingerprint(two)


def test_a_test_table_has_the_types_of_the_training_table(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text(TABLE)
    (tmp_path / "test.csv").write_text("town,age,risk\n7,8,low\n9,,high\n")
    source = read_source(
        str(tmp_path / "train.csv"), test=str(tmp_path / "test.csv"), columns=TableColumns(rows=named(drop="id"))
    )
    assert source.test_samples is not None
    assert source.test_samples["town"].tolist() == ["7", "9"]  # a category, though it looks like a number


@pytest.mark.parametrize(
    ("text", "lists", "words"),
    [
        (TABLE, {"target": "rsk"}, "no column 'rsk', it has 'id', 'age', 'town', 'risk': name the right one by target"),
        (TABLE, {"key": "nr"}, "no column 'nr'"),
        (TABLE, {"drop": "nr"}, "name the right one by drop_columns"),
        (TABLE, {"numeric": "risk"}, "column 'risk' of numeric is the target, too"),
        (TABLE, {"numeric": "town"}, "line 2: column 'town' is numeric, but has 'Bonn'"),
        (TABLE, {"drop": "age,town,id"}, "no column is left to train on"),
        (TABLE[:-9], {}, "line 5 has 3 fields, the header has 4"),
        ("a,a,risk\n1,2,x\n", {}, "2 columns are called 'a': rename all but one"),
        ("a,risk\n1,x\n2,x\n", {}, "has 1 classes, at least two are needed"),
        ("a,risk\n1,\n2,x\n3,\n", {}, "2 of 3 rows have no value in the target 'risk'"),
        ("a,risk\n", {}, "0 of 0 rows"),
        ("a,risk,split\n1,x,no\n", {}, "line 2: split is 'no': it must be train or test"),
        ("a,risk,true_label\n1,x,\n2,y,y\n", {}, "line 2 has no true label"),
    ],
)
def test_mistakes_are_one_line_that_names_the_place(
    tmp_path: Path, text: str, lists: dict[str, str], words: str
) -> None:
    assert words in fails(tmp_path, text, **lists)


def test_lists_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(InputError, match="'a' is in both numeric and drop_columns"):
        named(numeric="a,b", drop="c, a")
    with pytest.raises(InputError, match="key and target are both 'risk'"):
        named(key="risk")
    with pytest.raises(InputError, match="numeric 'a' has no meaning without target"):
        RowColumns.of(None, key=None, numeric="a", categorical=None, drop=None)


def test_a_damaged_parquet_file_and_a_wrong_kind_are_one_line(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1, 2], "risk": ["a", "b"]}), tmp_path / "table.parquet")
    whole = (tmp_path / "table.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    for name, words in (
        ("cut.parquet", "damaged, or not a Parquet file"),
        ("x.txt", "to train on rows, give a .csv, .tsv, .parquet or .jsonl file"),
        ("no.csv", "no such"),
    ):
        with pytest.raises(InputError, match=words) as caught:
            read_columns(tmp_path / name)
        assert "\n" not in str(caught.value)


def test_rows_to_predict_need_the_columns_of_the_training(tmp_path: Path) -> None:
    rows = read(tmp_path, drop="id").train_samples
    (tmp_path / "new.csv").write_text("age,more\n1,2\n")
    with pytest.raises(InputError, match="no column 'town', which the model needs: the columns are 'age', 'more'"):
        rows_like(rows.dtype, read_columns(tmp_path / "new.csv"), "new.csv")
    (tmp_path / "new.csv").write_text("age,town\nold,2\n")
    with pytest.raises(InputError, match=r"new.csv: line 2: column 'age' is numeric, but has 'old'"):
        rows_like(rows.dtype, read_columns(tmp_path / "new.csv"), "new.csv")


def test_many_columns_are_read(tmp_path: Path) -> None:
    """Each name was compared with all others: longer than a test may take, for two lines of a few megabytes."""
    header = ",".join(f"c{number}" for number in range(300_000))
    (tmp_path / "wide.csv").write_text(f"{header}\n{'1,' * 299_999}1\n")
    assert len(read_columns(tmp_path / "wide.csv").cells) == 300_000
    (tmp_path / "wide.csv").write_text(f"{header},c7\n")
    with pytest.raises(InputError, match="2 columns are called 'c7'"):
        read_columns(tmp_path / "wide.csv")


def test_a_small_file_of_names_that_differ_in_each_line_is_refused(tmp_path: Path) -> None:
    """20,000 lines with a name each made a table of 400 million cells."""
    lines = [json.dumps({f"n{number}": 1}) for number in range(20_000)]
    (tmp_path / "sparse.jsonl").write_text("\n".join(lines))
    with pytest.raises(InputError, match=r"20,000 different names of fields in 20,000 lines"):
        read_columns(tmp_path / "sparse.jsonl")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """Opening it would wait for a writer, without end; so would a device that never ends."""
    os.mkfifo(tmp_path / "table.csv")
    with pytest.raises(InputError, match="not a file or folder"):
        read_source(str(tmp_path / "table.csv"), columns=TableColumns(rows=named()))
