"""What a program gives to predict is what it means, or one line. Oracle: the same samples as a plain array or list."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from small_model import save_images, small_images, small_model

import dividemix
from dividemix import InputError, Model, Run
from dividemix.data.readers import read_source
from dividemix.model.inputs import VectorInput

GREY = small_model(image_shape=(8, 8, 1))
WORDS = ("goal match team player", "oven bread soup salt")


def texts() -> list[str]:
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(WORDS[i % 2].split(), 6)) for i in range(60)]


@pytest.fixture(scope="module")
def on_texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on the column `words` of a table."""
    folder = tmp_path_factory.mktemp("texts") / "run"
    table = pd.DataFrame({"id": range(60), "words": texts(), "topic": np.arange(60) % 2})
    columns: dict[str, Any] = {"text_column": "words", "label_column": "topic", "encoder": "tfidf"}
    dividemix.train(table, out=folder, progress=False, **columns)
    return folder


@pytest.fixture(scope="module")
def on_a_list(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """A model of a list of texts."""
    folder = tmp_path_factory.mktemp("texts") / "run"
    dividemix.train(texts(), np.arange(60) % 2, out=folder, progress=False, encoder="tfidf")
    return Model.from_pretrained(folder)


@pytest.fixture(scope="module")
def on_vectors(tmp_path_factory: pytest.TempPathFactory) -> Model:
    folder = tmp_path_factory.mktemp("vectors") / "run"
    vectors = np.random.default_rng(0).normal(size=(60, 3)) + 5 * np.eye(3)[np.arange(60) % 3]
    dividemix.train(vectors, np.arange(60) % 3, out=folder, progress=False, epochs=2)
    return Model.from_pretrained(folder)


def test_a_text_model_takes_the_column_that_it_was_trained_on(on_texts: Path) -> None:
    """Of a table it took the names of the columns for texts."""
    words = texts()[:4]
    for one in (Model.from_pretrained(on_texts), Run.load(on_texts)):
        expected = one.predict_proba(words)
        assert len(expected) == 4
        forms: list[Any] = [
            pd.DataFrame({"id": range(4), "words": words}),
            {"id": range(4), "words": words},
            [{"words": text} for text in words],
            pd.Series(words, name="anything"),
            np.array(words),
            tuple(words),
            (text for text in words),
        ]
        for form in forms:
            np.testing.assert_array_equal(one.predict_proba(form), expected)
        for single in (words[0], {"words": words[0]}, np.array(words)[0]):
            np.testing.assert_allclose(one.predict_proba(single), expected[:1], atol=1e-6)


def test_as_many_texts_as_a_vector_has_numbers_are_texts(on_a_list: Model) -> None:
    """An array of that shape was taken for one sample."""
    many = np.array((texts() * 300)[: on_a_list.takes.shape[0]])
    assert on_a_list.predict(many).shape == many.shape


@pytest.mark.parametrize(
    ("samples", "told"),
    [
        (pd.DataFrame({"a": ["x"], "b": ["y"]}), "a table, with the columns 'a', 'b': give a list of its texts"),
        ({"text": ["a goal"]}, "a table, with the columns 'text'"),
        ([["a", "b"], ["c", "d"]], "texts has list at position 0: must be text"),
        (pd.Series(["a", None]), "texts has .* at position 1: must be text"),
        (np.array([["a", "b"]]), "texts has ndarray at position 0"),
        (7, "texts is int: must be a text, a list of texts"),
        (None, "texts is NoneType"),
        (b"a goal", "texts is bytes"),
        (Path("a goal"), "texts is PosixPath"),
        (["a goal", 3.5], "texts has float at position 1"),
        ("  ", "blank text at position 0"),
    ],
)
def test_what_is_no_text_is_refused(on_a_list: Model, samples: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        on_a_list.predict(samples)


def test_a_table_without_the_trained_column_is_refused(on_texts: Path) -> None:
    told = "a table without 'words', the column that the model was trained on, with the columns 'text'"
    with pytest.raises(InputError, match=told):
        Model.from_pretrained(on_texts).predict(pd.DataFrame({"text": texts()}))


def test_a_table_of_images(tmp_path: Path) -> None:
    images = small_images(3, (8, 8, 1))
    paths = save_images(tmp_path, images[..., 0], ["a.png", "b.png", "c.png"])
    expected = GREY.predict_proba(images)
    forms: list[Any] = [
        pd.DataFrame({"id": range(3), "path": list(map(str, paths))}),
        pd.DataFrame({"image": [Image.fromarray(image[..., 0]) for image in images]}),
        pd.Series(list(map(str, paths))),
    ]
    for form in forms:
        np.testing.assert_allclose(GREY.predict_proba(form), expected, atol=1e-6)
    with pytest.raises(InputError, match="a table without a column 'path', 'image' or 'img': it has 'file'"):
        GREY.predict(pd.DataFrame({"file": paths}))
    with pytest.raises(InputError, match="images is dict"):
        GREY.predict({"path": paths})


def test_a_table_of_numbers(on_vectors: Model) -> None:
    vectors = np.random.default_rng(1).normal(size=(4, 3))
    expected = on_vectors.predict_proba(vectors)
    forms = [pd.DataFrame(vectors), pd.Series(list(vectors)), torch.from_numpy(vectors).half()]
    for form in forms:
        np.testing.assert_allclose(on_vectors.predict_proba(form), expected, atol=2e-2)
    np.testing.assert_allclose(on_vectors.predict_proba(pd.DataFrame(vectors).iloc[0]), expected[:1], atol=1e-6)
    np.testing.assert_allclose(on_vectors.predict_proba(vectors[0]), expected[:1], atol=1e-6)


@pytest.mark.parametrize(
    ("samples", "told"),
    [
        (np.zeros((4, 5)), r"vectors .* 5 .* 3"),
        (np.zeros(4), r"vectors has shape \(4,\)"),
        (np.zeros((2, 2, 3)), r"vectors has shape \(2, 2, 3\)"),
        (pd.DataFrame({"a": [1.0], "b": [2.0], "c": ["x"]}), "vectors has 'x' in row 0, column 'c': must be a number"),
        (pd.DataFrame({"a": [1.0, 2.0]}), r"vectors .* 1 .* 3"),
        ([1.0, 2.0, 3.0], "must be a vector of numbers for each sample"),
        ([[1.0, 2.0]], r"vectors .* 2 .* 3"),
        ([[1.0, 2.0, None]], "NaN|not finite|finite"),
        ({"a": [1.0]}, "vectors is dict"),
        ("1 2 3", "vectors is str"),
        (b"123", "vectors is bytes"),
        (Path("x.npy"), "vectors is PosixPath"),
        (None, "vectors is NoneType"),
        (np.full((1, 3), np.nan), "finite|NaN"),
        (np.zeros((2, 3), complex), "type complex128"),
        (np.array([["a", "b", "c"]]), "vectors has type"),
        ((row for row in np.zeros((2, 3))), "vectors is generator"),
    ],
)
def test_what_is_no_vector_of_the_model_is_refused(on_vectors: Model, samples: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        on_vectors.predict(samples)


@pytest.mark.parametrize(
    "shape", [(3, 64), (64,), (1, 64), (4, 4), (8, 9), (16, 4), (8, 8, 3), (3, 3, 8, 8), (2, 8, 8, 4)]
)
def test_only_shapes_of_the_models_images_pass(shape: tuple[int, ...]) -> None:
    """An array (3, 64) was taken for one image, and resized to 8 x 8."""
    for kind in (np.uint8, np.float32):
        with pytest.raises(
            InputError, match=r"this model takes \(N, 8, 8, 1\), \(N, 1, 8, 8\), \(N, 8, 8\), or one image"
        ):
            GREY.predict(np.zeros(shape, kind))
    with pytest.raises(InputError, match=str(shape).replace("(", r"\(").replace(")", r"\)")):
        GREY.predict(torch.zeros(shape))


@pytest.mark.parametrize("shape", [(8, 8), (8, 8, 1), (1, 8, 8), (1, 8, 8, 1), (1, 1, 8, 8)])
def test_one_image_in_any_of_its_shapes(shape: tuple[int, ...]) -> None:
    image = small_images(1, (8, 8, 1))
    expected = GREY.predict_proba(image)
    np.testing.assert_allclose(GREY.predict_proba(image.reshape(shape)), expected, atol=1e-6)
    np.testing.assert_allclose(GREY.predict_proba(torch.from_numpy(image.reshape(shape) / 255)), expected, atol=1e-6)


def test_a_table_of_numbers_is_taken_by_the_names_of_its_columns(tmp_path: Path) -> None:
    """Columns in another order were predicted by position. Oracle: the same numbers in the order of the training."""
    rng = np.random.default_rng(0)
    labels = np.arange(90) % 3
    table = pd.DataFrame(rng.normal(size=(90, 5)) + 4 * np.eye(3, 5)[labels], columns=list("abcde"))
    swapped = table[list("edcba")].assign(extra="x")
    run = dividemix.train(table, labels, out=tmp_path / "run", test=swapped, test_labels=labels, progress=False)
    assert run.summary()["kept_acc"] == pytest.approx(100 * np.mean(run.predict(table) == labels))
    expected = run.predict_proba(table.to_numpy())
    for model in (run, Run.load(tmp_path / "run"), Model.from_pretrained(tmp_path / "run")):
        for given in (table, swapped, table.set_axis(range(5), axis=1)):  # without names, the order counts
            np.testing.assert_array_equal(model.predict_proba(given), expected)
        with pytest.raises(InputError, match=r"^vectors has no column 'a' and 1 more of the training: it has 'c', 'd'"):
            model.predict(table.drop(columns=["a", "b"]))


def test_a_model_without_names_of_columns_goes_by_position(tmp_path: Path) -> None:
    """As every model of an earlier version."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(60, 4))
    run = dividemix.train(vectors, np.arange(60) % 2, out=tmp_path / "run", progress=False)
    assert "feature_names" not in (tmp_path / "run" / "model" / "config.json").read_text()
    given = pd.DataFrame(vectors, columns=list("dcba"))
    np.testing.assert_array_equal(run.predict_proba(given), run.predict_proba(vectors))


@pytest.mark.parametrize("names", [["a", "b"], ["a", "a", "b"], "abc", [1, 2, 3]])
def test_names_of_columns_that_do_not_fit_the_vectors_are_refused(tmp_path: Path, names: Any) -> None:
    with pytest.raises(ValueError, match=r"^feature_names must be different names, one for each of num_features$"):
        VectorInput.of({"num_features": 3, "feature_names": names})
    np.savez(tmp_path / "x.npz", x_train=np.eye(3), y_train=[0, 1, 1], feature_names=np.array(names))
    with pytest.raises(InputError, match=r"x\.npz: feature_names must be different texts, one for each number"):
        read_source(str(tmp_path / "x.npz"))
