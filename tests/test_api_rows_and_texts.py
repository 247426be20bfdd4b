"""Tables and texts of a Python program: trained, predicted, kept with the run and loaded again."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dividemix
from dividemix.data.packed_samples import is_packed, packed, unpacked
from dividemix.data.readers.arrays import read_arrays
from dividemix.data.table_rows import as_rows, rows_fingerprint
from dividemix.data.texts import are_texts, as_texts
from dividemix.errors import InputError
from dividemix.report.of_files import content_of_files
from dividemix.report.run_rows import run_rows
from dividemix.report.run_texts import run_texts

QUICK: dict[str, Any] = {"progress": False, "learner": "extra_trees", "num_trees": 5, "epochs": 2}
WORDS = {"sport": "goal match team player", "food": "oven bread soup salt"}


def frame(num_rows: int = 120) -> pd.DataFrame:
    """Rows whose label follows from one number and one category; one column has the names of the rows."""
    rng = np.random.default_rng(0)
    size, colour = rng.normal(size=num_rows), rng.choice(["1", "2"], num_rows)
    label = np.where(size + (colour == "1") > 0.5, "big", "small")
    names = [f"r{i}" for i in range(num_rows)]
    table = pd.DataFrame({"name": names, "size": size, "colour": colour, "label": label})
    table.loc[3, "size"] = None
    return table


def texts(num_texts: int = 60) -> tuple[list[str], list[str]]:
    """Texts of two topics, and their labels."""
    rng = np.random.default_rng(0)
    labels = ["sport" if i % 2 else "food" for i in range(num_texts)]
    return [" ".join(rng.choice(WORDS[label].split(), 6)) for label in labels], labels


def test_a_table_of_pandas_is_trained_and_kept(tmp_path: Path) -> None:
    table, out = frame(), tmp_path / "run"
    run = dividemix.train(table, target="label", key="name", categorical=["colour"], test=table, out=out, **QUICK)
    assert run.job.method == "cross_fitted"
    assert run.label_issues().paths == tuple(table["name"])
    assert np.mean(run.predict(table) == table["label"]) > 0.9
    again = dividemix.Run.load(out)
    assert again.material.digest == run.material.digest
    assert again.material.table is not None
    assert again.material.table["colour"].tolist() == table["colour"].tolist()  # texts, though they look like numbers
    np.testing.assert_array_equal(again.predict_proba(table), run.predict_proba(table))
    shown = run_rows(out, content_of_files(out))
    assert shown is not None
    assert len(shown) == 120
    flags = dividemix.find_label_issues(table, target="label", drop_columns="name", **QUICK)
    assert flags.shape == (120,)


def test_rows_may_be_a_list_of_dicts(tmp_path: Path) -> None:
    rows = frame().drop(columns="name").to_dict("records")
    run = dividemix.train(rows, target="label", out=tmp_path / "run", limit_train=60, **QUICK)
    assert len(run.material.labels) == 60
    assert dividemix.Run.load(tmp_path / "run").material.rows.tolist() == run.material.rows.tolist()


def test_a_list_of_texts_is_trained_and_kept(tmp_path: Path) -> None:
    words, labels = texts()
    out = tmp_path / "run"
    run = dividemix.train(words, labels, test=words[:10], test_labels=labels[:10], out=out, progress=False)
    assert run.material.texts == tuple(words)
    assert run.predict(["a goal in the match", "bread from the oven"]).tolist() == ["sport", "food"]
    assert dividemix.Run.load(out).material.digest == run.material.digest
    content = content_of_files(out)
    assert run_texts(out, content) == [words[row] for row in content.sample_rows]
    table = pd.DataFrame({"words": words, "topic": labels})
    same = dividemix.train(
        table, text_column="words", label_column="topic", out=tmp_path / "same", keep_data=False, progress=False
    )
    assert same.material.texts == tuple(words)


def test_mistakes_are_one_line() -> None:
    table = frame()
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"target": "lable"}, "data: no column 'lable', it has 'name', 'size'"),
        ({"target": "label", "numeric": "name"}, "data: row 0: column 'name' is numeric, but has 'r0'"),
        ({"text_column": "text"}, "data has no column 'text': it has 'name'"),
        ({"numeric": "size"}, "numeric 'size' has no meaning without target"),
        ({"target": "label", "drop_columns": -1}, "drop_columns is -1: it must be"),
        ({"target": 5}, "target is 5: it must be"),
    ]
    for settings, words in wrong:
        with pytest.raises(InputError, match=words):
            dividemix.train(table, progress=False, **settings)
    with pytest.raises(InputError, match="target is given, so the labels are in its column"):
        dividemix.train(table, table["label"], target="label", progress=False)
    with pytest.raises(InputError, match="blank text at position 1"):
        dividemix.train(["a text", " "], ["a", "b"], progress=False)


def test_what_is_packed_comes_back() -> None:
    rows = as_rows({"x, y": np.array([0.1, np.nan, -1e300]), "c": ["a", None, "\ud800"]})
    assert rows_fingerprint(unpacked(packed(rows))) == rows_fingerprint(rows)
    written = as_texts(["a", "two\nlines", "\U0001f600"])
    assert unpacked(packed(written)).tolist() == written.tolist()
    assert is_packed(packed(rows))
    assert not is_packed(np.zeros(20, dtype=np.uint8))
    vectors = np.zeros((3, 2))
    assert packed(vectors) is vectors


def test_paths_of_images_are_not_texts(tmp_path: Path) -> None:
    assert are_texts(["some words", "more"])
    assert not are_texts(["a.png", "some words"])
    assert not are_texts([str(tmp_path), str(tmp_path / "..")])
    assert not are_texts(["some words", "more"], are_paths=True)
    assert not are_texts(["some words", 3])
    assert not are_texts([])


def test_texts_stay_texts_in_a_directory_with_a_file_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One file named "hello" made paths of all."""
    texts, labels = ["hello", "thanks", "hello you", "thank you"] * 3, ["a", "b", "a", "b"] * 3
    (tmp_path / "hello").touch()
    monkeypatch.chdir(tmp_path)
    assert read_arrays(texts, labels).kind == "texts"
    message = r"no such file; .* image_root .*; of texts, give a table and text_column$"
    for given, root in ((texts, tmp_path), ([*texts[:-1], "a.png"], None)):
        with pytest.raises(InputError, match=message):
            read_arrays(given, labels, image_root=root)
