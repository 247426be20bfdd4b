"""The reader of text tables. Oracles: Python's csv module, and the bytes that the test wrote."""

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dividemix.data.text_table import read_text_table
from dividemix.errors import InputError

fields = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
grids = st.lists(st.lists(fields, min_size=2, max_size=4), max_size=6)


def written(grid: list[list[str]], delimiter: str, end: str) -> str:
    """The grid in a writer's words, below a header."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\r\n", quoting=csv.QUOTE_ALL)
    writer.writerows([["path", "label"], *grid])
    return text.getvalue() if end == "\r\n" else text.getvalue().removesuffix("\r\n") + end


@given(grid=grids, delimiter=st.sampled_from(",;\t"), end=st.sampled_from(["", "\n", "\r", "\r\n"]))
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_records_are_those_of_csv_and_unchanged_ones_keep_their_bytes(
    tmp_path_factory: pytest.TempPathFactory, grid: list[list[str]], delimiter: str, end: str, encoding: str
) -> None:
    path = tmp_path_factory.mktemp("table") / "t.csv"
    path.write_bytes(written(grid, delimiter, end).encode(encoding))
    table = read_text_table(path, {"path", "label"})
    assert table.columns == ["path", "label"]
    assert table.delimiter == delimiter
    assert [record.fields for record in table.records()] == [["path", "label"], *grid]
    assert [record.fields for record in table.rows()] == grid
    assert table.content([]) == path.read_bytes()
    assert table.content(table.rows()) == path.read_bytes()


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_record_knows_its_first_line_and_its_text(tmp_path: Path, end: str) -> None:
    lines = ["", "path,label", 'a.png,"two', 'lines"', "", ",", "b.png"]
    (tmp_path / "t.csv").write_bytes(end.join(lines).encode())
    table = read_text_table(tmp_path / "t.csv", {"path", "label"})
    assert [(record.line, record.text) for record in table.rows()] == [
        (3, f'a.png,"two{end}lines"{end}'),
        (6, f",{end}"),
        (7, "b.png"),
    ]
    assert [record.is_blank for record in table.rows()] == [False, True, False]
    assert [record.value(1) for record in table.rows()] == [f"two{end}lines", "", ""]


def test_only_the_record_with_a_new_value_is_written_again(tmp_path: Path) -> None:
    before = 'path;label\r\na.png;  cat\nb.png;"dog"\r\n"c.png";cat'
    (tmp_path / "t.csv").write_text(before, newline="")
    table = read_text_table(tmp_path / "t.csv", {"path", "label"})
    first, _, last = table.rows()
    first.replace(1, "x; y", table.delimiter)
    last.replace(1, "z", table.delimiter)
    assert table.content([first, last]).decode() == 'path;label\r\na.png;"x; y"\nb.png;"dog"\r\n"c.png";"z"'


@pytest.mark.parametrize(
    ("name", "text", "columns"),
    [
        ("t.csv", "path,label\n", ["path", "label"]),
        ("t.csv", "a,b,c,d;path;label\n", ["a,b,c,d", "path", "label"]),
        ("t.csv", "one,two,three;four\n", ["one", "two", "three;four"]),
        ("t.tsv", "path,label\n", ["path,label"]),
    ],
)
def test_the_delimiter_gives_the_needed_columns_or_else_most(
    tmp_path: Path, name: str, text: str, columns: list[str]
) -> None:
    (tmp_path / name).write_text(text)
    assert read_text_table(tmp_path / name, {"path", "label"}).columns == columns


def test_a_missing_column_is_named_with_those_that_exist_and_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("file,label\n")
    table = read_text_table(tmp_path / "t.csv", {"path"})
    assert table.column("label", "unused") == 1
    with pytest.raises(InputError, match=r"no column 'path' in its first line, which has 'file', 'label': name it so$"):
        table.column("path", "name it so")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty: its first line"),
        (b"\xef\xbb\xbf \n\n", "empty: its first line"),
        (b"path\na\nb\xff\n", "line 3 is not UTF-8"),
        (b"\xff\xfep\0a\0t\0h\0\n\0\x00", "line 2 is not UTF-16"),
        (b"path\na\0b\n", "NUL character in line 2"),
        (b"p\0a\0t\0h\0", "NUL character in line 1"),
    ],
)
def test_what_is_no_text_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_text_table(tmp_path / "t.csv", {"path"})


@pytest.mark.parametrize("field", [b'"a"b', b'"a', b"x" * (csv.field_size_limit() + 1)])
def test_a_damaged_record_is_refused_with_its_line(tmp_path: Path, field: bytes) -> None:
    (tmp_path / "t.csv").write_bytes(b"path,label\na,b\n" + field)
    with pytest.raises(InputError, match=r"t\.csv: damaged at line 3"):
        list(read_text_table(tmp_path / "t.csv", {"path", "label"}).rows())
