"""Mistaken calls from Python: each ends in one line that names what is wrong, or does what was meant.

Each of them once ended in a traceback, in a line about something else, or in a training on nonsense.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import dividemix
from dividemix import DivideMixClassifier, InputError, Model, Run, find_label_issues, find_method, train
from dividemix.data.readers.arrays import read_arrays
from dividemix.data.readers.given_labels import votes_of

Y = np.arange(40) % 4
X = np.random.default_rng(0).normal(size=(40, 4)) + 5 * np.eye(4)[Y]
QUICK: dict[str, Any] = {"progress": False, "epochs": 2, "device": "cpu"}
SPARSE: Any = pytest.importorskip("scipy.sparse")
NO: Any = "no"
NONE: Any = None
LISTED: list[Any] = Y.tolist()
WITH_NONE: list[Any] = [None, *LISTED[1:]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(X, Y, out=tmp_path_factory.mktemp("run") / "run", **QUICK)


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        (pd.Series(WITH_NONE, dtype="Int64"), r"labels\[0\] is <NA>: must be text or an integer"),
        (pd.Series([None, True, False, True] * 10, dtype="boolean"), r"labels\[0\] is <NA>"),
        (pd.Series([None, "a", "b", "c"] * 10, dtype="string"), r"labels\[0\] is "),
        (pd.Series(pd.to_datetime([None, *["2020-01-01", "2020-01-02"] * 19, "2020-01-03"])), r"labels\[0\] is NaT"),
        (dict(enumerate(LISTED)), "labels is {0: 0, .*: must be a list or an array"),
        (set(range(40)), "labels is {0, .*: must be a list or an array"),
        (Y + 0j, r"labels\[0\] is 0j"),
        ([object() for _ in Y], r"labels\[0\] is <object"),
        (np.eye(4)[Y], "labels are one-hot"),
        (np.eye(2, dtype=int)[Y % 2], "labels are one-hot"),
        (pd.get_dummies(pd.Series(Y)), "labels are one-hot"),
        (torch.eye(4)[Y], "labels are one-hot"),
        (Y[:, None], r"labels has shape \(40, 1\): must be \(40,\)"),
        (pd.DataFrame({"y": Y}), "labels is a table: give one of its columns"),
        (np.zeros((40, 2, 2)), r"labels\[0\]\[0\] is \[0.0, 0.0\]: must be text or an integer"),
    ],
)
def test_labels_that_name_no_classes(labels: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        read_arrays(X, labels)


def test_one_hot_rows_are_votes_if_the_annotators_are_named() -> None:
    assert votes_of(np.eye(2, dtype=int)[Y % 2], ["a", "b"], None, 40) is not None


def test_labels_may_be_made_on_the_way() -> None:
    """A generator was read twice: the second time it was empty."""
    source = read_arrays(X, (label for label in Y), true_labels=iter(LISTED), test=X, test_labels=map(int, Y))
    assert source.train_labels.tolist() == LISTED
    assert source.true_labels is not None
    assert source.test_labels is not None
    assert source.true_labels.tolist() == source.test_labels.tolist() == LISTED


@pytest.mark.parametrize(
    ("samples", "told"),
    [
        (SPARSE.csr_matrix(X), "data is csr_matrix, which is sparse: give an array"),
        (np.ma.masked_array(X, X > 6), "data has masked values"),
        (X * 1e300, "data has a number above 3e38 in row 0"),
        (pd.DataFrame({"a": X[:, 0], "b": ["x"] * 40}), "data has 'x' in row 0, column 'b': must be a number"),
        (pd.DataFrame(X).astype("Float64").mask(pd.DataFrame(X) > 6), "data has <NA> in row .*: must be a number"),
        (X.astype(str), r"data has type <U32 and shape \(40, 4\): must have numbers"),
    ],
)
def test_samples_with_something_hidden(run: Run, samples: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        read_arrays(samples, Y)
    with pytest.raises(InputError, match=told.replace("data", "vectors")):
        run.predict(samples)


def test_numbers_that_pandas_can_lack_are_numbers(run: Run) -> None:
    table = pd.DataFrame(X).astype("Float64")
    np.testing.assert_array_equal(np.asarray(read_arrays(table, Y).train_samples), X)
    np.testing.assert_array_equal(run.predict(table), run.predict(X))


def test_nothing_to_predict_gives_nothing(run: Run) -> None:
    empty: list[Any] = [[], X[:0], pd.DataFrame(X).iloc[:0], torch.zeros(0, 4)]
    for none in empty:
        assert run.predict(none).shape == (0,)
        assert run.predict_proba(none).shape == (0, 4)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda run: train(X, Y, keep_data=NO, **QUICK), "keep_data is 'no': it must be true or false"),
        (
            lambda run: find_label_issues(X, Y, return_indices_ranked_by_score=NO),
            "return_indices_ranked_by_score is",
        ),
        (lambda run: find_method(NONE), "method is None: it must be text"),
        (lambda run: model_of(run).predict(X, batch_size=True), "batch_size is True"),
        (lambda run: model_of(run).save_pretrained(NONE), "folder is None: it must be a path"),
        (lambda run: model_of(run).save_pretrained(run.directory.path / "summary.json"), "is a file: give a folder"),
        (lambda run: run.label_issues().to_parquet(NONE), "path is None: it must be a path"),
        (lambda run: run.label_issues().to_parquet("nowhere/x.parquet"), "nowhere/x.parquet: no such folder"),
    ],
)
def test_arguments_of_another_kind(run: Run, call: Callable[[Any], Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        call(run)


def model_of(run: Run) -> Any:
    return Model.from_pretrained(run.directory.path)


def test_settings_may_be_numbers_of_numpy(tmp_path: Path) -> None:
    settings: dict[str, Any] = {**QUICK, "epochs": np.int64(2), "seed": np.uint8(3), "lr": np.float32(0.5)}
    settings |= {"memory_gb": np.float64(1)}
    run = dividemix.train(X, Y, out=tmp_path / "run", **settings)
    assert (run.job.settings.epochs, run.job.settings.seed, run.job.settings.lr) == (2, 3, 0.5)


def test_the_classifier_takes_tensors_of_any_kind_of_number() -> None:
    """Oracle: the same numbers as an array."""
    classifier = DivideMixClassifier(epochs=2, device="cpu", random_state=0)
    short = torch.from_numpy(X).bfloat16()
    expected = classifier.fit(short.float().numpy(), Y).predict_proba(short.float().numpy())
    for form in (short, short.float().requires_grad_()):
        np.testing.assert_array_equal(classifier.fit(form, torch.from_numpy(Y)).predict_proba(form), expected)
