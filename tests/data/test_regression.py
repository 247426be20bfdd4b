"""Labels that are measurements are refused; classes that are numbers are not."""

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from workshop import fail

import dividemix
from dividemix.data.column_types import RowColumns
from dividemix.data.readers import read_source
from dividemix.data.readers.arrays import read_arrays
from dividemix.data.regression import refuse_regression
from dividemix.data.source import Source
from dividemix.errors import InputError


def source_of(labels: list[str]) -> Source:
    classes = tuple(dict.fromkeys(labels))
    samples = np.zeros((len(labels), 3), dtype=np.float32)
    return Source(
        name="toy", classes=classes, train_samples=samples, train_labels=np.array(list(map(classes.index, labels)))
    )


@pytest.mark.parametrize(
    "labels",
    [
        [str(i) for i in range(21)] * 2,  # many classes, two samples each
        [f"{i / 2:g}" for i in range(20)],  # ratings in halves
        [f"name {i}" for i in range(60)],
        [str(i) for i in range(20)],  # few samples
        [f"{250 + i / 10:.2f}" for i in range(25)] * 10,  # codes with fractions, ten samples each
        [str(i % 30) for i in range(59)],  # nearly two samples each
    ],
)
def test_classes_that_are_numbers_stay_allowed(labels: list[str]) -> None:
    refuse_regression(source_of(labels), "toy")


@pytest.mark.parametrize(
    "labels",
    [
        [str(1000 + i) for i in range(30)] * 2 + [str(i) for i in range(31)],  # hardly more than one sample each
        [f"{i + 0.5}" for i in range(21)] * 9,  # fractions
    ],
)
def test_measurements_are_refused(labels: list[str]) -> None:
    with pytest.raises(InputError, match=r"^toy: has .* numbers as labels .*: regression is not supported; "):
        refuse_regression(source_of(labels), "toy")


def test_the_message_names_columns_that_could_be_targets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with Path("people.csv").open("w", newline="", encoding="utf-8") as file:
        rows = ([20 + i % 7, "ab"[i % 2], f"id{i}", f"{i * 1.25}"] for i in range(60))
        csv.writer(file).writerows([["age", "risk", "name", "price"], *rows])
    assert fail(capsys, ["train", "people.csv", "--target", "price"]) == (
        "dividemix: error: people.csv: has 60 different numbers as labels of 60 rows, such as 73.75: regression is not"
        " supported; as --target, name a column of classes, such as age, risk; if they are classes, give them names,"
        " such as 'class 73.75'\n"
    )


def test_python_refuses_measurements() -> None:
    vectors = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
    with pytest.raises(InputError, match=r"^labels\[0\] is 0\.12.*: must be text or an integer; regression is not"):
        dividemix.train(vectors, vectors[:, 0])
    with pytest.raises(InputError, match=r"^data: has 60 different numbers as labels of 60 vectors"):
        dividemix.train(vectors, 100.0 * np.arange(60))


@pytest.mark.parametrize("num_each", [1, 4])
def test_text_and_named_classes_are_never_refused(num_each: int) -> None:
    """Codes such as those of diagnoses look like numbers with fractions."""
    codes = [f"{250 + i / 10:.2f}" for i in range(25)]
    labels = np.repeat(codes, num_each)
    vectors = np.random.default_rng(0).normal(size=(len(labels), 4)).astype(np.float32)
    table = pd.DataFrame(vectors, columns=list("abcd")).assign(code=labels)
    for source in (
        read_arrays(vectors, labels),
        read_arrays(vectors, labels.astype(object)),
        read_arrays(vectors, np.arange(len(labels)) // num_each, classes=codes),
        read_arrays(table, row_columns=RowColumns(target="code")),
    ):
        refuse_regression(source, "data")
    table["code"] = table["code"].astype(float)
    with pytest.raises(InputError, match=r"regression is not supported; .*; if they are classes, give them names"):
        refuse_regression(read_arrays(table, row_columns=RowColumns(target="code")), "data")


def test_names_of_folders_are_never_refused(tmp_path: Path) -> None:
    for i in range(25):
        for k in range(2):
            (folder := tmp_path / f"{250 + i / 10:.2f}").mkdir(exist_ok=True)
            Image.fromarray(np.full((8, 8), 9 * i + k, dtype=np.uint8)).save(folder / f"{k}.png")
    assert len(read_source(str(tmp_path)).classes) == 25


def test_a_test_set_may_have_few_samples_of_many_numbered_classes(tmp_path: Path) -> None:
    vectors = np.random.default_rng(0).normal(size=(90, 4)).astype(np.float32)
    np.savez(tmp_path / "train.npz", features=vectors, labels=np.arange(90) % 30)
    np.savez(tmp_path / "test.npz", features=vectors[:40], labels=np.arange(40) % 30)
    source = read_source(str(tmp_path / "train.npz"), test=str(tmp_path / "test.npz"))
    assert source.test_labels is not None
    assert len(source.test_labels) == 40
