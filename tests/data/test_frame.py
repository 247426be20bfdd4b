"""Tables of pandas and polars. Oracle: the same pixels as one uint8 array."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pictures import write_png
from PIL import Image

from dividemix.data.readers.arrays import read_arrays
from dividemix.data.source import Source
from dividemix.errors import InputError

IMAGES = np.random.default_rng(0).integers(0, 256, (6, 8, 8, 3), dtype=np.uint8)
LABELS = [0, 1, 0, 1, 1, 0]
PILLOW = [Image.fromarray(image) for image in IMAGES]


def check(source: Source) -> None:
    np.testing.assert_array_equal(source.train_samples, IMAGES)
    assert source.train_labels.tolist() == LABELS
    assert source.classes == ("a", "b")


pd = pytest.importorskip("pandas", reason="pandas is not installed")


@pytest.fixture
def table(tmp_path: Path) -> Any:
    for number, image in enumerate(PILLOW):
        image.save(tmp_path / f"{number}.png")
    paths = [str(tmp_path / f"{number}.png") for number in range(6)]
    return pd.DataFrame({"path": paths, "label": ["ab"[label] for label in LABELS]}, index=[7, 7, 3, 1, 0, 9])


def test_a_table_of_paths(table: Any, tmp_path: Path) -> None:
    check(read_arrays(table))
    relative = table.assign(path=[Path(path).name for path in table["path"]])
    check(read_arrays(relative, image_root=tmp_path))
    renamed = table.rename(columns={"path": "file", "label": "kind"})
    check(read_arrays(renamed, path_column="file", label_column="kind"))


def test_a_table_has_the_columns_of_a_csv_table(table: Any, tmp_path: Path) -> None:
    whole = table.assign(split=["train"] * 4 + ["test"] * 2, true_label=["b"] * 6)
    bad = pd.DataFrame({"path": [str(tmp_path / "none.png"), None], "label": "a", "split": "train", "true_label": "a"})
    source = read_arrays(pd.concat([whole, bad]))
    np.testing.assert_array_equal(source.train_samples, IMAGES[:4])
    np.testing.assert_array_equal(source.test_samples, IMAGES[4:])
    assert source.true_labels is not None
    assert source.true_labels.tolist() == [1] * 4
    assert [one.reason for one in source.skipped] == ["row 7: no image", "no such file"]


def test_a_table_of_images(table: Any) -> None:
    check(read_arrays(table.assign(path=PILLOW)))


def test_a_table_of_votes(table: Any) -> None:
    source = read_arrays(table.assign(ben=table["label"], carl=table["label"]), annotators=["label", "ben", "carl"])
    check(source)
    assert source.votes is not None
    assert source.votes.annotators == ("label", "ben", "carl")


def test_a_table_of_numbers_has_vectors() -> None:
    frame = pd.DataFrame(np.arange(24.0).reshape(6, 4))
    np.testing.assert_array_equal(read_arrays(frame, LABELS).train_samples, np.arange(24.0).reshape(6, 4))
    series = pd.Series(LABELS)
    assert read_arrays(IMAGES, series).train_labels.tolist() == LABELS


def test_a_column_of_paths(table: Any) -> None:
    check(read_arrays(table["path"], table["label"]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label_column": "kind"}, "data has no column 'kind': it has 'path', 'label'"),
        ({"path_column": "file"}, "data has no column 'file'"),
        ({"labels": LABELS}, "data is a table: put labels and true labels into its columns"),
        ({"true_labels": LABELS}, "data is a table: put labels"),
        ({"image_root": "nowhere"}, "image_root is nowhere: no such folder"),
    ],
)
def test_tables_that_make_no_sense(table: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_arrays(table, **options)


def test_a_table_to_test_on(table: Any) -> None:
    np.testing.assert_array_equal(read_arrays(table, test=table[:2]).test_samples, IMAGES[:2])


def test_a_table_of_polars(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    for number in range(4):
        write_png(tmp_path / f"{number}.png", number)
    frame = polars.DataFrame({"path": [f"{number}.png" for number in range(4)], "label": ["a", "b", "a", "b"]})
    assert read_arrays(frame, image_root=tmp_path).train_labels.tolist() == [0, 1, 0, 1]
