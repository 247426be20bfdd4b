"""Vectors as a kind of data, from every kind of file: the oracle is the array that was written."""

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from dividemix.data.mapped import map_npy
from dividemix.data.readers import npz as npz_reader
from dividemix.data.readers import read_source
from dividemix.data.readers.arrays import read_arrays
from dividemix.data.readers.table_columns import TableColumns
from dividemix.data.source import Source
from dividemix.data.vectors import vectors_fingerprint
from dividemix.errors import InputError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 5)).astype(np.float32)
Y = np.arange(12) % 3
NAMES = [f"c{label}" for label in Y]


def column(kind: Any, values: Any = X) -> Any:
    return pa.array([None if row is None else list(map(float, row)) for row in values], kind)


def as_npz(folder: Path) -> str:
    np.savez(folder / "v.npz", features=X, labels=NAMES)
    return str(folder / "v.npz")


def as_parquet(folder: Path) -> str:
    pa.parquet.write_table(pa.table({"e": column(pa.list_(pa.float32())), "label": NAMES}), folder / "v.parquet")
    return str(folder / "v.parquet")


def as_arrow(folder: Path) -> str:
    table = pa.table({"e": column(pa.list_(pa.float32(), 5)), "label": NAMES})
    pa.feather.write_feather(table, folder / "v.arrow")
    return str(folder / "v.arrow")


@pytest.mark.parametrize("write", [as_npz, as_parquet, as_arrow])
def test_a_file_gives_the_vectors_that_were_written(tmp_path: Path, write: Any) -> None:
    source = read_source(write(tmp_path))
    assert source.kind == "vectors"
    assert np.array_equal(source.train_samples[:], X)
    assert source.classes == ("c0", "c1", "c2")
    assert source.train_labels.tolist() == Y.tolist()
    assert source.rows.tolist() == list(range(12))


@pytest.mark.parametrize("suffix", [".npy", ".csv"])
def test_an_npy_file_has_its_labels_in_another_file(tmp_path: Path, suffix: str) -> None:
    np.save(tmp_path / "x.npy", X)
    labels = tmp_path / f"y{suffix}"
    if suffix == ".npy":
        np.save(labels, np.array(NAMES))
    else:
        labels.write_text("label,true_label\n" + "".join(f"{name},{name}\n" for name in NAMES))
    source = read_source(str(tmp_path / "x.npy"), labels=str(labels))
    assert isinstance(source.train_samples, np.memmap)
    assert np.array_equal(source.train_samples, X)
    assert source.train_labels.tolist() == Y.tolist()
    assert (source.true_labels is None) == (suffix == ".npy")


def test_an_npy_file_as_test_set(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", Y)
    source = read_source(numbered_npz(tmp_path), test=str(tmp_path / "x.npy"), test_labels=str(tmp_path / "y.npy"))
    assert np.array_equal(source.test_samples[:], X)  # type: ignore[index]
    assert source.test_labels is not None
    assert source.test_labels.tolist() == Y.tolist()


def numbered_npz(folder: Path) -> str:
    np.savez(folder / "n.npz", x_train=X, y_train=Y)
    return str(folder / "n.npz")


def test_rows_without_a_vector_or_a_label_are_skipped_and_splits_are_kept_apart(tmp_path: Path) -> None:
    vectors = [None if row == 3 else X[row] for row in range(12)]
    names = [None if row == 5 else NAMES[row] for row in range(12)]
    splits = ["test" if row > 8 else "train" for row in range(12)]
    table = pa.table({"e": column(pa.large_list(pa.float64()), vectors), "label": names, "split": splits})
    pa.parquet.write_table(table, tmp_path / "v.parquet", row_group_size=4)
    source = read_source(str(tmp_path / "v.parquet"))
    assert source.rows.tolist() == [0, 1, 2, 4, 6, 7, 8]
    assert np.array_equal(source.train_samples[:], X[source.rows])
    assert np.array_equal(source.test_samples[:], X[9:])  # type: ignore[index]
    assert [(one.path, one.reason) for one in source.skipped] == [
        ("row 3", "no vector"),
        ("row 5", "no label, or not a class"),
    ]


def test_large_vectors_of_an_npz_file_are_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npz_reader, "_LARGE", 200)
    source = read_source(numbered_npz(tmp_path), memory_gb=1e-6)
    assert isinstance(source.train_samples, np.memmap)
    assert np.array_equal(source.train_samples, X)
    np.savez_compressed(tmp_path / "c.npz", x_train=X, y_train=Y)
    assert not isinstance(read_source(str(tmp_path / "c.npz")).train_samples, np.memmap)


@pytest.mark.parametrize(
    "data",
    [X, X.astype(np.float64), list(X), X.tolist(), [tuple(row) for row in X.tolist()]],
    ids=["float32", "float64", "list of arrays", "lists", "tuples"],
)
def test_vectors_in_memory(data: Any) -> None:
    source = read_arrays(data, NAMES, test=data, test_labels=NAMES)
    assert source.kind == "vectors"
    np.testing.assert_array_equal(source.train_samples[:], X)
    np.testing.assert_array_equal(source.test_samples[:], X)  # type: ignore[index]


def test_a_column_of_a_data_set_in_memory() -> None:
    class Dataset:
        features: ClassVar[dict[str, Any]] = {}
        column_names = ("e", "label")

        def __len__(self) -> int:
            return len(X)

        def __getitem__(self, key: Any) -> Any:
            return {"e": X.tolist(), "label": NAMES}[key]

    source = read_arrays(Dataset(), features_column="e")
    np.testing.assert_array_equal(source.train_samples[:], X)
    with pytest.raises(InputError, match="data has no column 'f': it has 'e', 'label'"):
        read_arrays(Dataset(), features_column="f")


def broken(row: int, value: float) -> Any:
    vectors = X.copy()
    vectors[row, 2] = value
    return vectors


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (broken(7, np.nan), "has NaN or an infinite number in row 7"),
        (broken(0, -np.inf), "has NaN or an infinite number in row 0"),
        (X[:, :0], r"has shape \(12, 0\): must be \(N, D\)"),
        (X > 0, "has type bool: vectors must be numbers"),
        (X.astype(np.complex64), "has type complex64"),
        ([[1.0, 2.0]] * 11 + [[1.0]], "lists of different lengths"),
    ],
)
def test_vectors_that_cannot_be_used_are_one_line(data: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_arrays(data, NAMES)
    assert "\n" not in str(caught.value)


def test_test_vectors_of_another_length_are_refused() -> None:
    with pytest.raises(InputError, match="has vectors of 4 numbers, but the training vectors have 5"):
        read_arrays(X, NAMES, test=X[:, :4], test_labels=NAMES)


def mistakes(folder: Path) -> list[tuple[dict[str, Any], str]]:
    np.save(folder / "x.npy", X)
    np.save(folder / "short.npy", Y[:5])
    np.save(folder / "objects.npy", np.array([1, "a"], dtype=object))
    np.save(folder / "halves.npy", Y + 0.5)
    (folder / "cut.npy").write_bytes((folder / "x.npy").read_bytes()[:150])
    (folder / "y.csv").write_text("name\n1\n")
    two = pa.table({"a": column(pa.list_(pa.float32())), "b": column(pa.list_(pa.float32())), "label": NAMES})
    pa.parquet.write_table(two, folder / "two.parquet")
    ragged = pa.table({"a": column(pa.list_(pa.float32()), [*X[:11], X[11, :3]]), "label": NAMES})
    pa.parquet.write_table(ragged, folder / "ragged.parquet")
    pa.feather.write_feather(pa.table({"label": NAMES}), folder / "none.arrow")
    (folder / "broken.arrow").write_bytes(b"ARROW1 nothing")
    npy = {"data": "x.npy"}
    return [
        (npy, "x.npy: has no labels: name a file of them by labels"),
        (npy | {"labels": "y.npy"}, "y.npy: no such file"),
        (npy | {"labels": "short.npy"}, "short.npy: has 5 labels, but .*x.npy has 12 samples"),
        (npy | {"labels": "halves.npy"}, "halves.npy: label 0 is .*: labels must be integers or text"),
        (npy | {"labels": "objects.npy"}, "objects.npy: has Python objects"),
        (npy | {"labels": "y.csv"}, "y.csv: no column 'label'"),
        ({"data": "cut.npy", "labels": "short.npy"}, "cut.npy: not an .npy file, or cut short"),
        ({"data": "two.parquet"}, "its columns of lists of numbers are 'a', 'b': choose one by features_column"),
        ({"data": "two.parquet", "features_column": "label"}, "features_column 'label' has no lists of numbers"),
        ({"data": "two.parquet", "features_column": "a", "label_column": "x"}, "no column 'x'"),
        ({"data": "two.parquet", "features_column": "a", "labels": "short.npy"}, "labels .* has no meaning for"),
        ({"data": "ragged.parquet"}, r"vectors of column 'a' have \[3, 5\] numbers"),
        ({"data": "none.arrow"}, "has no column of lists of numbers"),
        ({"data": "broken.arrow"}, "broken.arrow: damaged, or not an Arrow file"),
    ]


def test_each_mistake_in_a_file_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for arguments, message in mistakes(tmp_path):
        columns = TableColumns.of({name: arguments.pop(name) for name in [*arguments] if name.endswith("_column")})
        with pytest.raises(InputError, match=message) as caught:
            read_source(**arguments, columns=columns)
        assert "\n" not in str(caught.value)


def test_a_truncated_arrow_file_is_one_line(tmp_path: Path) -> None:
    path = Path(as_arrow(tmp_path))
    content = path.read_bytes()
    for size in range(0, len(content) - 1, 61):
        path.write_bytes(content[:size])
        with pytest.raises(InputError, match="damaged, or not an Arrow file") as caught:
            read_source(str(path))
        assert "\n" not in str(caught.value)


def test_equal_vectors_have_equal_fingerprints_however_they_are_stored(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    same: list[Any] = [X, X.astype(np.float64), np.asfortranarray(X), map_npy(tmp_path / "x.npy")]
    assert len({vectors_fingerprint(one) for one in same}) == 1
    others: list[Any] = [X[::-1], X[:, ::-1], X[:-1], X.reshape(10, 6), broken(3, 0.5)]
    assert len({vectors_fingerprint(one) for one in (X, *others)}) == 6


def test_a_mapped_array_is_not_written_to(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    before = (tmp_path / "x.npy").read_bytes()
    map_npy(tmp_path / "x.npy")[:] = 0
    assert (tmp_path / "x.npy").read_bytes() == before


def test_a_source_of_vectors_is_limited_like_one_of_images() -> None:
    source: Source = read_arrays(X, NAMES).limit_train(6)
    np.testing.assert_array_equal(source.train_samples[:], X[:6])
