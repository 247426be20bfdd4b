"""Tables of paths and labels. Oracle: Python's csv writer and the images that the test wrote."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pictures import encoded, pixels, write_png

from dividemix.data.readers import read_source
from dividemix.data.readers.table_columns import TableColumns
from dividemix.data.source import Skipped, Source
from dividemix.errors import InputError

HEADER = ["path", "label"]
ROWS = [["img/0.png", "cat"], ["img/1.png", "dog"], ["img/2.png", "cat"], ["img/3.png", "dog"]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(8):
        write_png(tmp_path / f"img/{number}.png", number)
    return tmp_path


def text(rows: list[list[str]], **options: Any) -> str:
    buffer = io.StringIO(newline="")
    csv.writer(buffer, **options).writerows(rows)
    return buffer.getvalue()


def read(folder: Path, rows: list[list[str]], **options: Any) -> Source:
    (folder / "data.csv").write_bytes(text(rows).encode())
    columns = {name: options.pop(name) for name in ("path_column", "label_column", "image_root") if name in options}
    return read_source(str(folder / "data.csv"), columns=TableColumns(**columns), **options)


def check(
    source: Source, numbers: Sequence[int] = (0, 1, 2, 3), labels: Sequence[str] = ("cat", "dog", "cat", "dog")
) -> None:
    np.testing.assert_array_equal(source.train_samples, np.stack([pixels(number) for number in numbers]))
    assert [source.classes[label] for label in source.train_labels] == list(labels)


def test_paths_and_labels(folder: Path) -> None:
    source = read(folder, [HEADER, *ROWS])
    check(source)
    assert source.name == "data"
    assert source.paths == tuple(row[0] for row in ROWS)
    assert source.skipped == ()
    assert source.test_samples is None
    assert source.true_labels is None


@pytest.mark.parametrize("line", ["\r\n", "\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le with a mark", "utf-16-be with a mark"])
@pytest.mark.parametrize(("name", "delimiter"), [("a.csv", ","), ("a.csv", ";"), ("a.csv", "\t"), ("a.TSV", "\t")])
def test_delimiters_encodings_and_line_ends(folder: Path, name: str, delimiter: str, encoding: str, line: str) -> None:
    rows = [["label", "note", "path"], *([f"ä, {row[1]}", "x;y\tz", row[0]] for row in ROWS)]
    written = text(rows, delimiter=delimiter, lineterminator=line)
    if " with" in encoding:
        encoding, written = encoding.split()[0], "\ufeff" + written
    (folder / name).write_bytes(written.encode(encoding))
    check(read_source(str(folder / name)), labels=["ä, cat", "ä, dog", "ä, cat", "ä, dog"])


def test_quotes_and_new_lines_in_fields(folder: Path) -> None:
    odd = 'a "quoted", b\nline; two'
    (folder / "img" / "new\nline, or.png").write_bytes(encoded(pixels(0)))
    source = read(folder, [HEADER, ["img/new\nline, or.png", odd], ["img/1.png", "b"], ["img/2.png"]])
    check(source, (0, 1), (odd, "b"))
    assert source.skipped == (Skipped("img/2.png", "line 6: 1 fields, the header has 2"),)


def test_columns_can_be_named_and_others_are_passed_over(folder: Path) -> None:
    rows = [["id", "file", " class ", "path"], *(["7", row[0], row[1], "junk"] for row in ROWS)]
    check(read(folder, rows, path_column="file", label_column="class"))


def test_labels_are_sorted_naturally_and_stripped(folder: Path) -> None:
    source = read(folder, [HEADER, ["img/0.png", "10"], ["img/1.png", " 9"], ["img/2.png", "10 "]])
    assert source.classes == ("9", "10")
    assert source.train_labels.tolist() == [1, 0, 1]


def test_true_labels_are_read(folder: Path) -> None:
    source = read(folder, [[*HEADER, "true_label"], *([*row, "cat"] for row in ROWS)])
    assert source.true_labels is not None
    assert source.true_labels.tolist() == [0, 0, 0, 0]
    with pytest.raises(InputError, match="line 3 has no true label"):
        read(folder, [[*HEADER, "true_label"], [*ROWS[0], "cat"], [*ROWS[1], " "]])
    with pytest.raises(InputError, match=r"data\.csv: true labels: 'cow' is not a class"):
        read(folder, [[*HEADER, "true_label"], [*ROWS[0], "cat"], [*ROWS[1], "cow"]])


@pytest.mark.parametrize("name", ["test", "TEST", "val", "validation", "dev"])
def test_splits(folder: Path, name: str) -> None:
    rows = [
        [*HEADER, "split"],
        *([*row, "train"] for row in ROWS),
        ["img/4.png", "dog", name],
        ["img/5.png", "cat", name],
    ]
    source = read(folder, rows)
    check(source)
    np.testing.assert_array_equal(source.test_samples, np.stack([pixels(4), pixels(5)]))
    assert source.test_labels is not None
    assert source.test_labels.tolist() == [1, 0]
    (folder / "other.csv").write_text("path,label\nimg/4.png,dog\n")
    with pytest.raises(InputError, match=r"a second test set: .*data\.csv has its own"):
        read(folder, rows, test=str(folder / "other.csv"))


def test_the_training_data_is_no_test_data(folder: Path) -> None:
    """Also under another name."""
    rows = [HEADER, *ROWS]
    (folder / "link.csv").symlink_to(folder / "data.csv")
    for name in ("data.csv", "link.csv"):
        with pytest.raises(InputError, match=rf"test is '.*{name}': that is the training data: give other samples"):
            read(folder, rows, test=str(folder / name))


def test_true_labels_of_test_rows_are_not_needed(folder: Path) -> None:
    header = [*HEADER, "split", "true_label"]
    source = read(folder, [header, *([*row, "train", row[1]] for row in ROWS), ["img/4.png", "dog", "test", ""]])
    assert source.true_labels is not None
    assert source.test_labels is not None
    assert source.true_labels.tolist() == source.train_labels.tolist()
    assert source.test_labels.tolist() == [1]


@pytest.mark.parametrize("split", ["extra", "", "train test"])
def test_other_splits_are_refused(folder: Path, split: str) -> None:
    with pytest.raises(InputError, match=r"line 2 has split .* must be one of"):
        read(folder, [[*HEADER, "split"], ["img/0.png", "cat", split], ["img/1.png", "dog", "train"]])


def test_another_table_for_testing(folder: Path) -> None:
    (folder / "img/test.tsv").write_text("label\tpath\ndog\t5.png\ndog\t6.png\ncat\tnone.png\n")
    source = read(folder, [HEADER, *ROWS], test=str(folder / "img/test.tsv"))
    check(source)
    np.testing.assert_array_equal(source.test_samples, np.stack([pixels(5), pixels(6)]))
    assert source.test_labels is not None
    assert source.test_labels.tolist() == [1, 1]
    assert source.skipped == (Skipped("none.png", "test set: no such file"),)
    (folder / "img/test.tsv").write_text("label\tpath\ncow\t5.png\n")
    with pytest.raises(InputError, match=r"test\.tsv: test labels: 'cow' is not a class"):
        read(folder, [HEADER, *ROWS], test=str(folder / "img/test.tsv"))


def test_tables_folders_and_arrays_can_be_mixed(folder: Path) -> None:
    write_png(folder / "more/dog/0.png", 6)
    source = read(folder, [HEADER, *ROWS], test=str(folder / "more"))
    assert source.test_samples is not None
    np.testing.assert_array_equal(source.test_samples[0], pixels(6))
    names = np.array(["dog", "cat"])
    np.savez(folder / "t.npz", x_train=np.stack([pixels(1), pixels(2)]), y_train=[0, 1], classes=names)
    source = read(folder, [HEADER, *ROWS], test=str(folder / "t.npz"))
    assert source.test_labels is not None
    assert source.test_labels.tolist() == [1, 0]
    np.testing.assert_array_equal(source.test_samples, np.stack([pixels(1), pixels(2)]))
    source = read_source(str(folder / "t.npz"), test=str(folder / "more"))
    assert source.test_labels is not None
    assert source.test_labels.tolist() == [0]
    with pytest.raises(InputError, match="the training images are"):
        read(folder, [HEADER, *ROWS], test=str(folder / "t.npz"), image_size=16)


def test_rows_that_are_left_out(folder: Path) -> None:
    (folder / "link.png").symlink_to(folder / "img/1.png")
    (folder / "gone.png").symlink_to(folder / "img/gone.png")
    bad = {
        (str(folder / "img/0.png"), "cat"): "line 6: same image as line 2",
        ("link.png", "dog"): "line 7: same image as line 3",
        ("gone.png", "cat"): "link to a file that does not exist",
        ("img/none.png", "cat"): "no such file",
        ("img/4.png", " "): "line 10: no label",
        ("img", "cat"): "not a file",
        ("./img/0.png", "cat"): "line 12: same image as line 2",
        ("img/5.png", "cat"): "line 13: same image as line 14 with another label",
        ("img/../img/5.png", "dog"): "line 14: same image as line 13 with another label",
    }
    # Enough good rows, so that not too many fail.
    good = [[f"good/{number}.png", "cat"] for number in range(9)]
    for number, (path, _) in enumerate(good):
        write_png(folder / path, number)
    source = read(folder, [HEADER, *ROWS, *map(list, bad), ["", "cat"], *good])
    expected = {Skipped(path, reason) for (path, _), reason in bad.items()} | {Skipped("line 15", "line 15: no image")}
    assert set(source.skipped) == expected
    assert len(source.train_labels) == 4 + 9


def test_images_may_be_anywhere(folder: Path) -> None:
    """Labels in a project, images on another disk: absolute paths, paths upwards, links."""
    (folder / "project").mkdir()
    (folder / "project/link.png").symlink_to(folder / "img/2.png")
    (folder / "project/more").symlink_to(folder / "img")
    rows = [["../img/0.png", "cat"], [str(folder / "img/1.png"), "dog"], ["link.png", "cat"], ["more/3.png", "dog"]]
    source = read(folder / "project", [HEADER, *rows])
    check(source)
    assert source.paths == tuple(path for path, _ in rows)
    assert source.skipped == ()


def test_paths_start_from_the_image_root(folder: Path) -> None:
    (folder / "project").mkdir()
    rows = [["0.png", "cat"], ["1.png", "dog"], ["../img/2.png", "cat"], [str(folder / "img/3.png"), "dog"]]
    check(read(folder / "project", [HEADER, *rows], image_root=folder / "img"))
    split = [[*HEADER, "split"], *([*row, "train"] for row in rows), ["4.png", "dog", "test"]]
    source = read(folder / "project", split, image_root=folder / "img")
    np.testing.assert_array_equal(source.test_samples, pixels(4)[np.newaxis])
    with pytest.raises(InputError, match=r"3 of 4: '0\.png': no such file; .* start from .*project: set image_root"):
        read(folder / "project", [HEADER, *rows[:2], ["2.png", "cat"], rows[3]])
    with pytest.raises(InputError, match=r"^image_root is .*none: no such folder"):
        read(folder / "project", [HEADER, *ROWS], image_root=folder / "none")


def test_a_path_that_comes_back_inside_is_fine(folder: Path) -> None:
    check(read(folder, [HEADER, ["img/../img/0.png", "cat"], ["./img//1.png", "dog"], *ROWS[2:]]))


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (
            [["file", "label"], *ROWS],
            {},
            "no column 'path' in its first line, which has 'file', 'label': "
            "for images set path_column NAME, for texts set text_column NAME, for rows name the labels by target$",
        ),
        (
            [["path", "class"], *ROWS],
            {},
            "no column 'label' .*: name the column of labels, for example label_column 'class'",
        ),
        ([["path", "path", "label"], *ROWS], {}, "2 columns are called 'path'"),
        ([["path", "label", "split", "split"], *ROWS], {}, "2 columns are called 'split'"),
        ([HEADER], {}, "has no images"),
        ([HEADER, *ROWS], {"label_column": "path"}, "path_column and label_column are both 'path'"),
        ([HEADER, *ROWS[:1]], {}, "1 readable image of 1 class"),
    ],
)
def test_tables_that_make_no_sense(folder: Path, rows: list[list[str]], options: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(folder, rows, **options)


def test_rows_are_counted_below_the_header_with_those_that_are_not_used(folder: Path) -> None:
    """As a spreadsheet or pandas counts them: a row of empty fields is one, an empty line is none."""
    (folder / "data.csv").write_text(
        "\npath,label,split\nimg/0.png,cat,train\n\nimg/none.png,cat,train\n,,\nimg/4.png,dog,test\n"
        "img/1.png,dog,train\nimg/2.png,,train\n  \nimg/3.png,dog,train\n,,\n"
    )
    source = read_source(str(folder / "data.csv"))
    assert source.paths == ("img/0.png", "img/1.png", "img/3.png")
    assert source.rows.tolist() == [0, 4, 6]
    assert source.num_given == 8
    assert [one.path for one in source.skipped] == ["img/2.png", "img/none.png"]
