"""The .npz reader against the arrays that the test saved; each way a file can be wrong has a case."""

import io
import pickle
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dividemix.data.readers import read_source
from dividemix.data.readers.npz import read_npz
from dividemix.errors import InputError


def arrays(**changes: Any) -> dict[str, Any]:
    """Arrays of twelve training and four test images in three classes, with changes; None leaves one out."""
    rng = np.random.default_rng(0)
    full = {
        "x_train": rng.integers(0, 256, (12, 5, 6), dtype=np.uint8),
        "y_train": np.arange(12) % 3,
        "x_test": rng.integers(0, 256, (4, 5, 6), dtype=np.uint8),
        "y_test": np.array([0, 1, 2, 0]),
        "y_true": np.arange(12)[::-1] % 3,
    }
    return {name: array for name, array in (full | changes).items() if array is not None}


def save(folder: Path, **changes: Any) -> Path:
    path = folder / "data.npz"
    np.savez(path, **arrays(**changes))
    return path


@pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
def test_all_arrays_come_back(tmp_path: Path, write: Callable[..., None]) -> None:
    given = arrays()
    write(tmp_path / "clothes.npz", **given)
    source = read_source(str(tmp_path / "clothes.npz"))
    assert source.name == "clothes"
    assert source.classes == ("0", "1", "2")
    np.testing.assert_array_equal(source.train_samples, given["x_train"][..., None])
    np.testing.assert_array_equal(source.test_samples, given["x_test"][..., None])
    for got, name in ((source.train_labels, "y_train"), (source.test_labels, "y_test"), (source.true_labels, "y_true")):
        np.testing.assert_array_equal(got, given[name])


def test_colour_images_and_the_required_arrays_alone(tmp_path: Path) -> None:
    images = np.zeros((12, 5, 6, 3), np.uint8)
    source = read_npz(save(tmp_path, x_train=images, x_test=None, y_test=None, y_true=None))
    assert source.train_samples.shape == (12, 5, 6, 3)
    assert source.test_samples is None
    assert source.test_labels is None
    assert source.true_labels is None


@pytest.mark.parametrize("name", ["y_train", "y_test", "y_true"])
def test_the_highest_label_of_any_array_counts_the_classes(tmp_path: Path, name: str) -> None:
    labels = arrays()[name].copy()
    labels[0] = 5
    assert read_npz(save(tmp_path, **{name: labels})).classes == ("0", "1", "2", "3", "4", "5")


def test_images_can_have_names(tmp_path: Path) -> None:
    assert read_npz(save(tmp_path)).paths is None
    names = [f"img/{number} ä.png" for number in range(12)]
    assert read_npz(save(tmp_path, paths=np.array(names))).paths == tuple(names)


def test_labels_can_be_text_in_natural_order(tmp_path: Path) -> None:
    """Oracle: the order written out, and each label's name."""
    given, tested = np.array(["b10", "b9", "A1"] * 4), np.array(["A1", "b10", "b9", "A1"])
    source = read_npz(save(tmp_path, y_train=given, y_test=tested, y_true=given[::-1]))
    assert source.classes == ("A1", "b9", "b10")
    for labels, names in (
        (source.train_labels, given),
        (source.test_labels, tested),
        (source.true_labels, given[::-1]),
    ):
        assert labels is not None
        assert [source.classes[label] for label in labels] == names.tolist()


def test_text_labels_keep_the_order_of_classes(tmp_path: Path) -> None:
    changes = {"y_train": np.array(["x", "y", "z"] * 4), "y_test": np.array(list("zyxz")), "y_true": None}
    source = read_npz(save(tmp_path, classes=np.array(["z", "w", "y", "x"]), **changes))
    assert source.classes == ("z", "w", "y", "x")
    assert source.train_labels.tolist() == [3, 2, 0] * 4
    assert source.test_labels is not None
    assert source.test_labels.tolist() == [0, 2, 3, 0]


def test_classes_can_be_named(tmp_path: Path) -> None:
    source = read_npz(save(tmp_path, classes=np.array(["cat", "dog", "äöü", "none"])))
    assert source.classes == ("cat", "dog", "äöü", "none")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"x_train": None},
            "has no samples, its arrays are 'y_train', 'x_test', 'y_test', 'y_true': name them "
            "features and labels (vectors), or x_train and y_train",
        ),
        ({"y_train": None}, "has no labels, its arrays are 'x_train'"),
        ({"weights": np.zeros(3)}, "unknown array 'weights': required are"),
        ({"x_test": None}, "y_test without x_test"),
        ({"y_test": None}, "x_test without y_test"),
        ({"x_train": np.zeros((12, 5, 6), np.float64)}, "x_train has type float64: must be uint8"),
        ({"x_train": np.zeros(12, np.uint8)}, "x_train has shape (12,)"),
        ({"x_train": np.zeros((12, 30))}, "x_test has images, but the training samples are vectors"),
        ({"x_train": np.zeros((12, 5, 6, 4), np.uint8)}, "x_train has shape (12, 5, 6, 4)"),
        ({"x_train": np.zeros((12, 0, 6), np.uint8)}, "x_train has shape (12, 0, 6, 1): has no pixels"),
        ({"x_train": np.uint8(3)}, "x_train has shape ()"),
        (
            {"x_train": np.zeros((1, 5, 6), np.uint8), "y_train": [1], "y_true": None},
            "x_train has one image, at least two",
        ),
        ({"x_test": np.zeros((4, 6, 5), np.uint8)}, "x_test has images of (6, 5, 1), but the training images are"),
        ({"y_train": np.arange(11) % 3}, "y_train has shape (11,): must be (12,), one label for each sample"),
        ({"y_train": np.eye(12)}, "y_train has shape (12, 12)"),
        ({"y_train": np.arange(12) / 4}, "y_train has 0.25: labels must be integers"),
        ({"y_train": np.full(12, np.nan)}, "y_train has nan"),
        ({"y_train": np.arange(12) % 3 - 1}, "y_train has label -1"),
        ({"y_train": np.array(["a", "b", "c"] * 4)}, "y_test has type int64, but y_train has text"),
        (
            {"y_train": np.array(["a", "b", "c"] * 4), "y_test": np.array(list("abcd")), "y_true": None},
            "y_test: 'd' is not a class of the training labels, which are 'a', 'b', 'c'",
        ),
        (
            {"y_train": np.array(["a", "b"] * 6), "y_test": np.array(list("abab")), "y_true": np.array(["c"] * 12)},
            "y_true: 'c' is not a class",
        ),
        ({"y_train": np.array([["a", "b"]] * 6), "x_test": None, "y_test": None, "y_true": None}, "has shape (6, 2)"),
        ({"y_test": np.array(list("abca"))}, "y_test has text: labels must be integers"),
        ({"y_train": np.array([0, 255] * 6)}, "y_train has label 255, but 12 training samples are too few for 256"),
        ({"y_train": np.array([0, 10**15] * 6)}, "y_train has label 1000000000000000"),
        ({"y_test": np.array([0, 1, 99, 0])}, "y_test has label 99"),
        ({"y_true": np.arange(12) + 7}, "y_true has label 18"),
        ({"y_train": np.zeros(12), "y_test": np.zeros(4), "y_true": np.zeros(12)}, "all labels are 0"),
        ({"y_train": np.ones(12)}, "all training labels are 1"),
        ({"classes": np.array(["a", "b"])}, "y_train has label 2: labels must be from 0 to 1"),
        ({"paths": np.array(["a", "b"])}, "paths is <U1 of shape (2,): must be one text for each sample"),
        ({"paths": np.arange(12)}, "paths is int64 of shape (12,): must be one text"),
        ({"classes": np.array(["a"])}, "classes is ['a']: must be at least two different names"),
        ({"classes": np.array(["a", "b", "a"])}, "two different names"),
        ({"classes": np.array([1, 2, 3])}, "classes is int64 of shape (3,)"),
        ({"classes": np.array([["a", "b", "c"]])}, "a list of names"),
        ({"y_train": np.array([0, "a", None] * 4, object)}, "has Python objects"),
    ],
)
def test_each_violation_is_one_line_that_names_file_and_array(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    path = save(tmp_path, **changes)
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        read_npz(path)
    assert "\n" not in str(caught.value)
    assert "data" in str(caught.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.npz': no such file"):
        read_source(str(tmp_path / "none.npz"))


def test_a_root_has_no_meaning_here(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no meaning"):
        read_source(str(save(tmp_path)), tmp_path)


class Touches:
    """Unpickling an instance would create the marker file."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.marker,)


def test_pickled_objects_do_not_run(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    path = save(tmp_path, y_train=np.array([Touches(marker)] * 12, object))
    with pytest.raises(InputError, match="has Python objects"):
        read_npz(path)
    path.write_bytes(pickle.dumps(Touches(marker)))
    with pytest.raises(InputError, match=r"not an \.npz file"):
        read_npz(path)
    assert not marker.exists()


def npy(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


@pytest.mark.parametrize("content", [b"", b"garbage" * 100, npy(np.zeros(3)), b"PK\x05\x06"])
def test_a_file_that_is_no_zip(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "data.npz"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"data\.npz: not an \.npz file"):
        read_npz(path)


def test_a_folder_is_no_npz(tmp_path: Path) -> None:
    (tmp_path / "data.npz").mkdir()
    with pytest.raises(InputError, match="not an"):
        read_npz(tmp_path / "data.npz")


@pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
def test_truncated_anywhere(tmp_path: Path, write: Callable[..., None]) -> None:
    path = tmp_path / "data.npz"
    write(path, **arrays())
    content = path.read_bytes()
    for size in range(0, len(content) - 1, 97):
        path.write_bytes(content[:size])
        with pytest.raises(InputError):
            read_npz(path)


@pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
def test_a_flipped_byte_is_found_or_harmless(tmp_path: Path, write: Callable[..., None]) -> None:
    """Whatever byte is flipped: the same arrays, or InputError; never other arrays, never another exception."""
    path = tmp_path / "data.npz"
    given = arrays()
    write(path, **given)
    content = path.read_bytes()
    messages = []
    for position in range(0, len(content), 7):
        path.write_bytes(content[:position] + bytes([content[position] ^ 0xFF]) + content[position + 1 :])
        try:
            source = read_npz(path)
        except InputError as error:
            messages.append(str(error))
        else:
            np.testing.assert_array_equal(source.train_samples, given["x_train"][..., None])
            np.testing.assert_array_equal(source.train_labels, given["y_train"])
    assert len(messages) > 50
    assert not any("\n" in message for message in messages)


@pytest.mark.parametrize(
    ("member", "message"),
    [
        (b"no array at all", "x_train is not an array"),
        (npy(np.zeros((12, 5, 6), np.uint8))[:-9], "damaged"),
        (npy(np.zeros(1, np.uint8)).replace(b"(1,)", b"(9" + b"9" * 15 + b",)"), "damaged"),
    ],
)
def test_a_member_that_is_no_array(tmp_path: Path, member: bytes, message: str) -> None:
    path = tmp_path / "data.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x_train.npy", member)
        archive.writestr("y_train.npy", npy(np.arange(12) % 3))
    with pytest.raises(InputError, match=message):
        read_npz(path)


def test_rows_say_what_the_images_were_taken_from(tmp_path: Path) -> None:
    arrays: dict[str, Any] = {"x_train": np.zeros((3, 4, 4), np.uint8), "y_train": np.array([0, 1, 1])}
    np.savez(tmp_path / "a.npz", **arrays, rows=np.array([1, 4, 9], np.uint16))
    source = read_npz(tmp_path / "a.npz")
    assert source.rows.tolist() == [1, 4, 9]
    assert source.rows.dtype == np.int64
    for rows in ([1, 4], [1, 4, 4], [-1, 4, 9], [0.0, 1.0, 2.0], [[1, 4, 9]], ["0", "1", "2"]):
        np.savez(tmp_path / "a.npz", **arrays, rows=np.array(rows))
        with pytest.raises(InputError, match=r"a\.npz: rows "):
            read_npz(tmp_path / "a.npz")


def test_deeply_nested_texts_are_damage(tmp_path: Path) -> None:
    """JSON nested deeper than the parser's stack was a traceback. A run of somebody else has such a file."""
    content = np.frombuffer(b'{"kind": ' + b"[" * 100_000, dtype=np.uint8)
    np.savez(tmp_path / "data.npz", x_train=content, y_train=np.arange(4) % 2)
    with pytest.raises(InputError, match="x_train is damaged"):
        read_source(str(tmp_path / "data.npz"))


def test_a_message_has_the_names_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "short.npz"
    vectors = np.zeros((12, 3), np.float32)
    np.savez(path, features=vectors, labels=np.arange(10) % 2)
    with pytest.raises(InputError, match=r"short\.npz: labels has shape \(10,\): must be \(12,\)"):
        read_npz(path)
    np.savez(path, features=vectors * np.nan, labels=np.arange(12) % 2)
    with pytest.raises(InputError, match=r"short\.npz: features has"):
        read_npz(path)
    np.savez(path, x=vectors, y=np.arange(12) % 2)
    with pytest.raises(
        InputError, match="has no samples and no labels, its arrays are 'x', 'y': name them features and"
    ):
        read_npz(path)
