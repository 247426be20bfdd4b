"""Source against the arrays it was given; its limit against a slow loop over the samples; each violation has a case."""

import dataclasses
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import DTypeLike, NDArray

from dividemix.data.source import Source
from dividemix.errors import InputError


def make(**changes: Any) -> Source:
    """A source of seven images in three classes, with changes."""
    rng = np.random.default_rng(0)
    fields = {
        "name": "toy",
        "classes": ("a", "b", "c"),
        "train_samples": rng.integers(0, 256, (7, 4, 5, 3), dtype=np.uint8),
        "train_labels": np.array([0, 1, 2, 0, 1, 2, 0]),
        "test_samples": rng.integers(0, 256, (2, 4, 5, 3), dtype=np.uint8),
        "test_labels": np.array([2, 0]),
        "true_labels": np.array([0, 0, 2, 1, 1, 2, 0]),
    }
    return Source(**(fields | changes))


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.uint64, np.float32, np.float64])
def test_whole_numbers_of_any_type_become_int64(dtype: DTypeLike) -> None:
    source = make(train_labels=np.array([0, 1, 2, 0, 1, 2, 0], dtype=dtype), test_labels=np.array([2, 0], dtype=dtype))
    for labels, expected in ((source.train_labels, [0, 1, 2, 0, 1, 2, 0]), (source.test_labels, [2, 0])):
        assert labels is not None
        assert labels.dtype == np.int64
        assert labels.tolist() == expected


def images(*shape: int, dtype: DTypeLike = np.uint8) -> NDArray[Any]:
    return np.zeros(shape, dtype)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"classes": ("a",)}, "toy: has 1 classes, at least two"),
        ({"train_samples": images(7, 4, 5, 3, dtype=np.float32)}, "train_images has type float32: must be uint8"),
        ({"train_samples": images(7, 4, 5, 3, dtype=np.int8)}, "train_images has type int8: must be uint8"),
        ({"train_samples": images(7)}, "train_images has shape (7,)"),
        ({"train_samples": images(7, 60)}, "test_vectors has images, but the training samples are vectors"),
        ({"train_samples": images(7, 4, 5)}, "train_images has shape (7, 4, 5)"),
        ({"train_samples": images(7, 3, 4, 5)}, "with 1 or 3 channels"),
        ({"train_samples": images(7, 0, 5, 3)}, "has no pixels"),
        ({"train_samples": images(0, 4, 5, 3), "train_labels": np.zeros(0, int)}, "has no pixels"),
        (
            {"train_samples": images(1, 4, 5, 3), "train_labels": np.zeros(1, int)},
            "train_images has one image, at least two",
        ),
        ({"train_labels": np.array([0, 1, 2, 0, 1, 2])}, "train_labels has shape (6,): must be (7,), one label"),
        ({"train_labels": np.zeros((7, 1), int)}, "train_labels has shape (7, 1)"),
        ({"train_labels": np.array([0, 1, 2, 0, 1, 2, 3])}, "train_labels has label 3: labels must be from 0 to 2"),
        ({"train_labels": np.array([0, 1, 2, 0, 1, 2, 2**64 - 1], np.uint64)}, "has label 18446744073709551615"),
        ({"train_labels": np.array([0, 1, 2, 0, 1, 2, -1])}, "train_labels has label -1: labels must be >= 0"),
        ({"train_labels": np.array([0, 1, 2, 0, 1, 2, -1.0])}, "train_labels has label -1: labels must be >= 0"),
        ({"train_labels": np.array([0, 1, 2, 0, 1, 2, 0.5])}, "train_labels has 0.5: labels must be integers"),
        ({"train_labels": np.array([0, 1, 2, 0, 1, 2, np.nan])}, "train_labels has nan: labels must be integers"),
        ({"train_labels": np.array([0, 1, 2, 0, 1, 2, np.inf])}, "train_labels has inf: labels must be integers"),
        ({"train_labels": np.array(list("abcabca"))}, "train_labels has text: labels must be integers"),
        ({"train_labels": np.array(["a", None] * 3 + ["b"], object)}, "train_labels has text: labels must be integers"),
        ({"train_labels": np.zeros(7, complex)}, "train_labels has complex128"),
        ({"train_labels": np.full(7, 2)}, "all training labels are 2, at least two classes"),
        ({"true_labels": np.array([0, 1, 2, 0, 1, 2, 7])}, "true_labels has label 7"),
        ({"true_labels": np.array([0, 1])}, "true_labels has shape (2,)"),
        ({"test_labels": None}, "belong together"),
        ({"test_samples": None}, "belong together"),
        ({"test_samples": images(2, 4, 4, 3)}, "test_images has images of (4, 4, 3), but the training images are"),
        ({"test_samples": images(0, 4, 5, 3), "test_labels": np.zeros(0, int)}, "test_images has shape (0, 4, 5, 3)"),
        ({"test_samples": images(2, 4, 5, 3, dtype=np.uint16)}, "test_images has type uint16"),
        ({"test_labels": np.array([0, 5])}, "test_labels has label 5"),
        ({"test_labels": np.array([0])}, "test_labels has shape (1,)"),
    ],
)
def test_each_violation_is_one_line_that_names_the_array(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        make(**changes)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("toy: ")


def test_a_source_without_test_or_true_labels_is_fine() -> None:
    source = make(test_samples=None, test_labels=None, true_labels=None)
    assert source.test_labels is None
    assert source.true_labels is None


@pytest.mark.parametrize("with_truth", [True, False])
@pytest.mark.parametrize("limit", [3, 4, 6])
def test_limit_takes_the_first_of_each_given_class_in_order(with_truth: bool, limit: int) -> None:
    source = make() if with_truth else make(true_labels=None)
    kept, counts = [], dict.fromkeys(range(3), 0)
    for position, label in enumerate(source.train_labels.tolist()):
        if counts[label] < limit // 3:
            counts[label] += 1
            kept.append(position)
    limited = source.limit_train(limit)
    assert isinstance(source.train_samples, np.ndarray)
    assert isinstance(limited.train_samples, np.ndarray)
    assert limited.train_samples.tolist() == [source.train_samples[position].tolist() for position in kept]
    assert limited.train_labels.tolist() == [source.train_labels[position] for position in kept]
    if with_truth:
        assert source.true_labels is not None
        assert limited.true_labels is not None
        assert limited.true_labels.tolist() == source.true_labels[kept].tolist()
    assert limited.test_samples is source.test_samples
    assert limited.classes == source.classes
    assert limited.rows.tolist() == kept
    assert limited.num_given == 7


def test_true_labels_do_not_decide_what_is_trained() -> None:
    """The classes whose samples were counted were the true ones."""
    one, other = make(), make(true_labels=np.array([2, 1, 1, 1, 0, 0, 2]))
    assert one.limit_train(3).rows.tolist() == other.limit_train(3).rows.tolist()
    assert one.long_tail(3).rows.tolist() == other.long_tail(3).rows.tolist()


def test_rows_stay_those_of_the_data_as_it_was_given() -> None:
    source = make(train_labels=np.array([0, 0, 2, 1, 1, 2, 0]), rows=np.array([2, 3, 5, 8, 9, 11, 12]), num_given=20)
    limited = source.limit_train(3)
    assert limited.rows.tolist() == [2, 5, 8]  # labels 0, 2, 1: the first of each class
    assert limited.num_given == 20
    assert make().rows.tolist() == list(range(7))
    assert make().num_given == 7


@pytest.mark.parametrize("limit", [2, 0, -6])
def test_a_limit_that_cannot_be_kept_is_refused(limit: int) -> None:
    with pytest.raises(InputError, match=f"limit_train is {limit}: must be at least 3"):
        make().limit_train(limit)


def test_a_limit_for_testing_holds_for_every_test_set() -> None:
    images, labels = np.arange(8 * 3, dtype=np.uint8).repeat(4).reshape(8, 2, 2, 3)[..., :3], np.arange(8) % 2
    source = make(train_samples=np.zeros((7, 2, 2, 3), np.uint8), test_samples=images, test_labels=labels)
    source = dataclasses.replace(source, other_tests={"web": (images[:6], labels[:6])})
    small = source.limit_test(4)
    np.testing.assert_array_equal(small.test_samples, images[:4])
    assert small.test_labels is not None
    assert small.test_labels.tolist() == [0, 1, 0, 1]
    assert small.other_tests["web"][1].tolist() == [0, 1, 0, 1]
    assert small.train_samples is source.train_samples
    with pytest.raises(InputError, match="limit_test is 4: toy has no test images"):
        make(test_samples=None, test_labels=None).limit_test(4)


def test_reading_data_needs_no_torch() -> None:
    code = "import sys, dividemix.data.readers; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
