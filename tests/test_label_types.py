"""What a program gets back has the type of the labels that it gave. Oracle: the labels themselves, by comparison."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.typing import NDArray
from toys import SETTINGS, toy_arrays

import dividemix
from dividemix import InputError, Model, Run
from dividemix.data.classes import class_labels, label_type

QUICK: dict[str, Any] = {**SETTINGS, "progress": False}
VECTORS: dict[str, Any] = {"progress": False, "epochs": 2, "device": "cpu"}


def clusters(labels: NDArray[Any]) -> NDArray[np.float32]:
    """Vectors that show the position of their label among all."""
    noise = np.random.default_rng(0).normal(size=(len(labels), 4))
    return (8 * np.eye(4)[np.unique(labels, return_inverse=True)[1]] + noise).astype(np.float32)


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (np.arange(60) % 3, "i"),
        ((np.arange(60) % 3 - 1).astype(np.int8) * 5, "i"),
        ((np.arange(60) % 3).astype(np.uint16), "i"),
        ((np.arange(60) % 3).astype(float), "i"),
        (np.arange(60) % 2 == 0, "b"),
        (np.array(["10", "9", "01"])[np.arange(60) % 3], "U"),
    ],
)
def test_predictions_compare_with_the_labels_of_arrays(tmp_path: Path, labels: NDArray[Any], kind: str) -> None:
    X = clusters(labels)
    run = dividemix.train(X, labels, out=tmp_path / "run", **VECTORS)
    model = Model.from_pretrained(tmp_path / "run")
    model.save_pretrained(tmp_path / "copy")
    loaded = Run.load(tmp_path / "run")
    for one in (run, loaded, model, Model.from_pretrained(tmp_path / "copy")):
        assert (one.predict(X) == labels).mean() > 0.9
        assert one.predict(X).dtype.kind == one.predict(X[:0]).dtype.kind == kind
        assert set(one.classes) == set(labels.tolist())
        assert one.predict(X).tolist() == [one.classes[k] for k in one.predict_proba(X).argmax(axis=1)]
    for issues in (run.label_issues(), loaded.label_issues()):
        assert issues.classes == run.classes
        assert all(row["given_label"] == labels[row["index"]] for row in issues.rows())
        table = issues.to_pandas()
        assert (table["given_label"].to_numpy() == labels[table["index"]]).all()
        assert {type(row["predicted_label"]) for row in issues.rows()} <= {type(label) for label in run.classes}


@pytest.mark.parametrize(
    "labels",
    [
        (np.arange(40) % 4).tolist(),
        torch.arange(40) % 4,
        pd.Series(np.arange(40) % 4),
        pd.Series(np.arange(40) % 4, dtype="Int64"),
        pd.Series(np.arange(40) % 4).astype("category"),
    ],
    ids=["list", "tensor", "series", "nullable", "categories"],
)
def test_integers_in_any_container_come_back_as_integers(tmp_path: Path, labels: Any) -> None:
    toy = toy_arrays()
    run = dividemix.train(toy["x_train"], labels, out=tmp_path / "run", **QUICK)
    assert run.classes == (0, 1, 2, 3)
    assert run.predict(toy["x_train"]).dtype.kind == "i"


def test_labels_that_come_with_the_samples(tmp_path: Path) -> None:
    """Pairs, rows of a table, texts of a table, and votes of annotators."""
    toy = toy_arrays()
    pairs = list(zip(toy["x_train"], toy["y_train"].tolist(), strict=True))
    assert dividemix.train(pairs, out=tmp_path / "pairs", **QUICK).classes == (0, 1, 2, 3)
    votes = np.stack([toy["y_train"], toy["y_train"], np.full(40, np.nan)], axis=1)
    voted = dividemix.train(toy["x_train"], votes, out=tmp_path / "votes", **QUICK)
    assert voted.classes == (0, 1, 2, 3)
    assert Run.load(tmp_path / "votes").classes == (0, 1, 2, 3)
    risk = np.arange(60) % 2 == 0
    table = pd.DataFrame({"size": risk + np.random.default_rng(0).normal(0, 0.1, 60), "risk": risk})
    rows = dividemix.train(table, target="risk", out=tmp_path / "rows", progress=False)
    assert (rows.predict(table) == table["risk"]).mean() > 0.9
    rng, sets = np.random.default_rng(0), (["goal", "match", "team", "player"], ["oven", "bread", "soup", "salt"])
    words = pd.DataFrame({"text": [" ".join(rng.choice(sets[i % 2], 6)) for i in range(60)], "label": [7, 5] * 30})
    texts = dividemix.train(words, text_column="text", out=tmp_path / "texts", progress=False, encoder="tfidf")
    assert (texts.predict(words["text"].tolist()) == words["label"]).mean() > 0.9
    assert Run.load(tmp_path / "texts").classes == (5, 7)


def test_classes_that_are_named_come_back_by_their_names(tmp_path: Path) -> None:
    toy = toy_arrays()
    run = dividemix.train(toy["x_train"], toy["y_train"], classes=list("abcd"), out=tmp_path / "run", **QUICK)
    assert run.classes == tuple("abcd")
    assert run.predict(toy["x_train"]).dtype.kind == "U"


def test_files_have_the_names_as_text(tmp_path: Path) -> None:
    labels = np.arange(60) % 3 - 1
    run = dividemix.train(clusters(labels), labels, out=tmp_path / "run", **VECTORS)
    with (tmp_path / "run" / "label_issues.csv").open(newline="") as file:
        written = {row["given_label"] for row in csv.DictReader(file)}
    assert written == {"-1", "0", "1"}
    described = json.loads((tmp_path / "run" / "model" / "config.json").read_text())
    assert described["classes"] == ["0", "1", "-1"]
    assert described["label_type"] == "integer"
    run.label_issues().to_parquet(tmp_path / "issues.parquet")
    assert set(pd.read_parquet(tmp_path / "issues.parquet")["given_label"]) == {"-1", "0", "1"}
    assert set(run.summary()["class_noise"]) == {"-1", "0", "1"}


def test_a_model_without_the_type_predicts_text(tmp_path: Path) -> None:
    """Such is a model that an earlier version saved."""
    labels = np.arange(60) % 3
    dividemix.train(clusters(labels), labels, out=tmp_path / "run", **VECTORS)
    config = tmp_path / "run" / "model" / "config.json"
    described = json.loads(config.read_text())
    del described["digest"]
    for kind, told in (("number", "label_type is 'number'"), ("boolean", "label_type is 'boolean'")):
        config.write_text(json.dumps(described | {"label_type": kind}))
        with pytest.raises(InputError, match=told):
            Model.from_pretrained(tmp_path / "run")
    del described["label_type"]
    config.write_text(json.dumps(described))
    model = Model.from_pretrained(tmp_path / "run")
    assert model.classes == ("0", "1", "2")
    assert model.predict(clusters(labels)).dtype.kind == "U"


def test_the_type_of_labels() -> None:
    assert label_type([1, np.int8(2), 3.0, None, float("nan")]) == "integer"
    assert label_type([True, np.False_]) == "boolean"
    for several in ([1, "2"], [True, 1], [2**70, 1], ["1"], []):
        assert label_type(several) == "text"
    assert class_labels(("0", "-3"), "integer") == (0, -3)
    assert class_labels(("True", "False"), "boolean") == (True, False)
    for names, kind in ((("a", "1"), "integer"), (("01",), "integer"), (("1",), "boolean"), (("a",), "words")):
        with pytest.raises(ValueError, match=r"label_type|invalid"):
            class_labels(names, kind)
