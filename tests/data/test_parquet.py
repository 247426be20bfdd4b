"""Parquet files. Oracle: the images that the test wrote with pyarrow, in the layouts in use."""

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pictures import encoded, pixels, write_png

from dividemix.data.readers import read_source
from dividemix.data.readers.column_files import read_columns
from dividemix.data.readers.parquet import list_parquet
from dividemix.data.readers.table_columns import TableColumns
from dividemix.data.readers.text_rows import texts_of
from dividemix.data.source import Skipped, Source
from dividemix.errors import InputError

IMAGES = np.stack([pixels(number) for number in range(4)])
BYTES = [encoded(image) for image in IMAGES]


def test_without_pyarrow_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(InputError, match=r"data\.parquet: needs pyarrow: pip install 'dividemix\[parquet\]'"):
        read_source(str(tmp_path / "data.parquet"))


pa = pytest.importorskip("pyarrow", reason="pyarrow is an extra: pip install 'dividemix[parquet]'")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is an extra: pip install 'dividemix[parquet]'")


def write(path: Path, columns: dict[str, Any], features: dict[str, Any] | None = None) -> str:
    table = pa.table(columns)
    if features is not None:
        table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    pq.write_table(table, path)
    return str(path)


def check(source: Source, labels: list[str]) -> None:
    np.testing.assert_array_equal(source.train_samples, IMAGES)
    assert [source.classes[label] for label in source.train_labels] == labels


HF_FEATURES = {"picture": {"_type": "Image"}, "kind": {"_type": "ClassLabel", "names": ["cat", "ape", "7"]}}


def test_the_hugging_face_layout(tmp_path: Path) -> None:
    structs: list[dict[str, bytes | str | None]] = [
        {"bytes": content, "path": f"{number}.png"} for number, content in enumerate(BYTES)
    ]
    structs[2]["path"] = None
    path = write(tmp_path / "train.parquet", {"picture": structs, "kind": [1, 0, 1, 2]}, HF_FEATURES)
    source = read_source(path)
    check(source, ["ape", "cat", "ape", "7"])
    assert source.name == "train"
    assert source.classes == ("cat", "ape", "7")
    assert source.paths == ("0.png", "1.png", "row 2", "3.png")


def test_class_names_that_are_not_each_once_are_refused(tmp_path: Path) -> None:
    features = {"label": {"_type": "ClassLabel", "names": ["a", "b", "a"]}}
    with pytest.raises(InputError, match="two classes of column 'label' have the same name"):
        read_source(write(tmp_path / "a.parquet", {"image": BYTES, "label": [0, 1, 2, 0]}, features))


@pytest.mark.parametrize("column", ["path", "image", "img"])
def test_plain_bytes_and_text_labels(tmp_path: Path, column: str) -> None:
    source = read_source(write(tmp_path / "a.parquet", {column: BYTES, "label": ["b", "a", "b", "a10"]}))
    check(source, ["b", "a", "b", "a10"])
    assert source.classes == ("a", "a10", "b")
    assert source.paths == ("row 0", "row 1", "row 2", "row 3")


@pytest.mark.parametrize("as_struct", [True, False])
def test_paths(tmp_path: Path, as_struct: bool) -> None:
    paths = [f"img/{number}.png" for number in range(4)]
    for number, path in enumerate(paths):
        write_png(tmp_path / path, number)
    column = [{"bytes": None, "path": path} for path in paths] if as_struct else paths
    source = read_source(write(tmp_path / "a.parquet", {"path": column, "label": [0, 10, 9, 0]}))
    check(source, ["0", "10", "9", "0"])
    assert source.classes == ("0", "9", "10")
    assert source.paths == tuple(paths)


def test_columns_splits_and_true_labels(tmp_path: Path) -> None:
    columns = {
        "x": [*BYTES, BYTES[2]],
        "y": [0.0, 1.0, 0.0, 1.0, 1.0],
        "true_label": [1, 1, 0, 0, None],
        "split": ["train"] * 4 + ["test"],
    }
    source = read_source(
        write(tmp_path / "a.parquet", columns), columns=TableColumns(path_column="x", label_column="y")
    )
    check(source, ["0", "1", "0", "1"])
    assert source.true_labels is not None
    assert source.test_labels is not None
    assert source.true_labels.tolist() == [1, 1, 0, 0]
    assert source.test_labels.tolist() == [1]
    np.testing.assert_array_equal(source.test_samples, IMAGES[2:3])


def test_rows_that_are_left_out(tmp_path: Path) -> None:
    images = [*BYTES, None, b"", b"bad", BYTES[0], BYTES[0]]
    labels = [0, 1, 0, 1, 0, 0, 0, None, 5]
    features = {"image": {"_type": "Image"}, "label": {"_type": "ClassLabel", "names": ["a", "b"]}}
    with pytest.raises(InputError, match="too many images cannot be used, 5 of 9"):
        read_source(write(tmp_path / "a.parquet", {"image": images, "label": labels}, features))
    images, labels = [*images, *BYTES], [*labels, 0, 1, 1, 1]
    source = read_source(write(tmp_path / "a.parquet", {"image": images, "label": labels}, features))
    assert len(source.train_labels) == 8
    assert source.skipped == (
        Skipped("row 4", "row 4: no image"),
        Skipped("row 7", "row 7: no label"),
        Skipped("row 8", "row 8: label '5' is not one of the classes"),
        Skipped("row 5", "empty"),
        Skipped("row 6", "not an image, or damaged at the start"),
    )


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"pixels": BYTES, "label": [0, 1, 0, 1]},
            "no column 'path', it has 'pixels', 'label': name the right one by path_column",
        ),
        ({"image": BYTES, "kind": [0, 1, 0, 1]}, "no column 'label'.* label_column"),
        ({"image": [1, 2, 3, 4], "label": [0, 1, 0, 1]}, "too many images .* no image: int instead of bytes"),
        ({"image": [{"a": 1}] * 4, "label": [0, 1, 0, 1]}, "too many images .* no image"),
        ({"image": [{"bytes": 1, "path": 2}] * 4, "label": [0, 1, 0, 1]}, "not a struct of bytes and path"),
        ({"image": BYTES, "label": [0, 0, 0, 0]}, "at least one image of each of two classes"),
        ({"image": BYTES[:0], "label": pa.array([], pa.int64())}, "has no images"),
    ],
)
def test_tables_that_make_no_sense(tmp_path: Path, columns: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_source(write(tmp_path / "a.parquet", columns))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "metadata",
    [
        b"",
        b"{",
        b"[]",
        b'{"info": {"features": [1]}}',
        b'{"info": {"features": {"label": 3}}}',
        b"\xff",
        b"[" * 100_000,
    ],
)
def test_metadata_that_is_none_is_passed_over(tmp_path: Path, metadata: bytes) -> None:
    table = pa.table({"image": BYTES, "label": [0, 1, 0, 1]}).replace_schema_metadata({b"huggingface": metadata})
    pq.write_table(table, tmp_path / "a.parquet")
    check(read_source(str(tmp_path / "a.parquet")), ["0", "1", "0", "1"])


def test_truncated_anywhere(tmp_path: Path) -> None:
    path = Path(write(tmp_path / "a.parquet", {"image": BYTES, "label": [0, 1, 0, 1]}))
    content = path.read_bytes()
    for size in range(0, len(content) - 1, 101):
        path.write_bytes(content[:size])
        with pytest.raises(InputError, match="damaged, or not a Parquet file") as caught:
            read_source(str(path))
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "reader", [read_columns, partial(texts_of, text_column="text"), partial(list_parquet, path_column="text")]
)
def test_what_pyarrow_says_in_several_lines_is_one_line_to_every_reader(
    tmp_path: Path, reader: Callable[[Path], object]
) -> None:
    """The readers of texts printed all lines."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": ["a", "b"], "label": ["c", "d"]}), path, use_dictionary=False)
    content = path.read_bytes()
    path.write_bytes(content[:4] + b"\xff" * 12 + content[16:])  # the header of the first page
    with pytest.raises(OSError, match="\n"):
        pq.ParquetFile(path).read()
    with pytest.raises(InputError, match=r"a\.parquet: damaged, or not a Parquet file: \w") as caught:
        reader(path)
    assert "\n" not in str(caught.value)


def test_rows_are_those_of_the_table(tmp_path: Path) -> None:
    columns = {
        "image": [BYTES[0], b"bad", BYTES[1], None, BYTES[2], BYTES[3]],
        "label": [0, 0, 1, 1, 0, 1],
        "split": ["train", "train", "test", "train", "train", "train"],
    }
    source = read_source(write(tmp_path / "a.parquet", columns))
    assert source.rows.tolist() == [0, 4, 5]
    assert source.num_given == 6
