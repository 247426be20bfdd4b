"""Corrected tables of rows against the bytes, or the values, that they must have."""

from pathlib import Path

import pandas as pd
import pytest

from dividemix.errors import InputError
from dividemix.relabel.corrections import Correction
from dividemix.relabel.relabel import relabel

TABLE = """\
name;x;risk
"a; b";1;low

c;2;low
;;
d;;high
"""


def one(index: int, given: str, new: str, path: str, action: str = "choose") -> Correction:
    return Correction(where="c.csv: line 2", index=index, path=path, given_label=given, new_label=new, action=action)


def corrected(folder: Path, *decided: Correction, key: str | None = "name", target: str = "risk") -> str:
    (folder / "people.csv").write_text(TABLE)
    relabel(folder / "people.csv", decided, folder / "out.csv", target=target, key=key)
    return (folder / "out.csv").read_text()


def test_rows_are_counted_as_in_training_and_all_else_stays(tmp_path: Path) -> None:
    """An empty line is not a row, but a row of empty fields is."""
    found = corrected(tmp_path, one(1, "low", "high", "c"), one(3, "high", "", "d", "delete"))
    assert found == TABLE.replace("c;2;low", "c;2;high").replace("d;;high\n", "")


@pytest.mark.parametrize(
    ("decision", "options", "message"),
    [
        (one(9, "low", "high", "c"), {}, "has no row 9: the corrections are for other data"),
        (one(1, "low", "high", "a; b"), {}, "no row 1 with key 'a; b'"),
        (one(1, "low", "high", "c"), {"key": None}, "is a key: name the column of keys by key"),
        (one(1, "high", "low", "c"), {}, "given_label is 'high', but .* has line 4 as 'low'"),
        (one(1, "low", "high", "c"), {"target": "rsk"}, "no column 'rsk'"),
    ],
)
def test_corrections_of_other_data_are_refused(
    tmp_path: Path, decision: Correction, options: dict[str, str], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        corrected(tmp_path, decision, **options)
    assert not (tmp_path / "out.csv").exists()


def test_a_parquet_table_keeps_its_types(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [0.5, None, 2.0], "risk": [3, 4, 3]})
    frame.to_parquet(tmp_path / "t.parquet")
    decided = [one(0, "3", "4", ""), one(2, "3", "", "", "delete")]
    relabel(tmp_path / "t.parquet", decided, tmp_path / "out.parquet", target="risk")
    expected = pd.DataFrame({"x": [0.5, None], "risk": [4, 4]})
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "out.parquet"), expected)
    with pytest.raises(InputError, match="is not a class"):
        relabel(tmp_path / "t.parquet", [one(0, "3", "many", "")], tmp_path / "new.parquet", target="risk")


def test_other_tables_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"x": 1, "risk": "a"}\n')
    with pytest.raises(InputError, match=r"\.csv, \.tsv and \.parquet tables: convert it"):
        relabel(tmp_path / "t.jsonl", [], tmp_path / "o.jsonl", target="risk")
