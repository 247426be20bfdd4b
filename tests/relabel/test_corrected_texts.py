"""Corrected tables of texts against the bytes that they must have."""

from pathlib import Path

import pytest

from dividemix.errors import InputError
from dividemix.relabel.corrections import Correction
from dividemix.relabel.relabel import relabel

TABLE = """\
words;topic;split
"a; goal";sport;train

;;
bake it;sport;train
  ;food;train
an oven;food;test
"two
lines";food;train
"""


def one(index: int, given: str, new: str, action: str = "choose", path: str = "") -> Correction:
    return Correction(where="c.csv: line 2", index=index, path=path, given_label=given, new_label=new, action=action)


def corrected(folder: Path, *decided: Correction, name: str = "news.csv", column: str | None = "words") -> str:
    (folder / name).write_text(TABLE)
    out = folder / "elsewhere" / f"out{Path(name).suffix}"
    out.parent.mkdir()
    relabel(folder / name, decided, out, text_column=column, label_column="topic")
    return out.read_text()


def test_rows_are_counted_as_in_training_and_all_else_stays(tmp_path: Path) -> None:
    """Blank rows do not count; rows without a text and rows to test on do."""
    found = corrected(tmp_path, one(1, "sport", "food"), one(4, "food", "", "delete"), one(0, "sport", "sport", "keep"))
    assert found == TABLE.replace("bake it;sport", "bake it;food").replace('"two\nlines";food;train\n', "")


@pytest.mark.parametrize(
    ("decision", "message"),
    [
        (one(3, "food", "sport"), "no training text 3: the corrections are for other data"),
        (one(9, "food", "sport"), "no training text 9"),
        (one(1, "sport", "food", path="a.png"), "no training text 1 with path 'a.png'"),
        (one(1, "food", "sport"), "given_label is 'food', but .* has line 5 as 'sport'"),
    ],
)
def test_corrections_of_other_data_are_refused(tmp_path: Path, decision: Correction, message: str) -> None:
    with pytest.raises(InputError, match=message):
        corrected(tmp_path, decision)
    assert not (tmp_path / "elsewhere" / "out.csv").exists()


@pytest.mark.parametrize("name", ["news.jsonl", "news.parquet"])
def test_other_tables_of_texts_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"texts are corrected in \.csv and \.tsv tables only: convert it"):
        corrected(tmp_path, one(1, "sport", "food"), name=name)


def test_without_the_column_of_texts_the_message_names_the_setting(tmp_path: Path) -> None:
    (tmp_path / "news.csv").write_text(TABLE)
    with pytest.raises(InputError, match="no path: for a table of texts, name their column by text_column; for rows"):
        relabel(tmp_path / "news.csv", [one(1, "sport", "food")], tmp_path / "out.csv", label_column="topic")
