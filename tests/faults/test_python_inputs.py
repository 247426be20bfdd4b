"""Values that the Python interface cannot use: one line each, which names the argument."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_model import small_images, small_model
from toys import SETTINGS, toy_arrays

from dividemix.api import find_label_issues, train
from dividemix.data.readers.arrays import read_arrays
from dividemix.errors import InputError
from dividemix.model.model import Model
from dividemix.planning.job import JOB_FIELDS
from dividemix.runs.run import Run

X, Y = toy_arrays()["x_train"], toy_arrays()["y_train"]
PIXELS = torch.from_numpy(X)
HUGE = 10**5000  # more digits than Python writes


def refused(call: Callable[[], object]) -> str:
    """The one line of an InputError."""
    with pytest.raises(InputError) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600
    return str(caught.value)


IMAGES: dict[str, Any] = {
    "a sparse tensor": PIXELS.float().to_sparse(),
    "a meta tensor": PIXELS.to("meta"),
    "a list of meta tensors": [PIXELS[0].to("meta")] * 40,
    "complex numbers": PIXELS.to(torch.complex64),
    "huge integers": np.full((40, 8, 8), 2**64 - 1, dtype=np.uint64),
    "a list of huge integers": [HUGE] * 40,
    "dates": np.zeros((40, 8, 8), dtype="M8[s]"),
    "a 0-d array": np.array(5),
    "a 0-d tensor": torch.tensor(5),
    "a number": 5,
    "nothing": None,
}


@pytest.mark.parametrize("images", IMAGES.values(), ids=IMAGES.keys())
def test_images_that_are_none(images: Any) -> None:
    """Row 11: sparse and meta tensors, 0-d arrays: tracebacks."""
    assert refused(lambda: read_arrays(images, Y)).startswith("data")
    assert refused(lambda: small_model().predict_proba(images)).startswith("images")


def test_bfloat16_images_are_images() -> None:
    """Row 11: a traceback. Oracle: the same numbers as float32, which has all of bfloat16's."""
    short = (PIXELS / 255).bfloat16()
    expected = read_arrays(short.float().numpy(), Y).train_samples
    assert np.array_equal(np.asarray(read_arrays(short, Y).train_samples), np.asarray(expected))
    model, images = small_model(), (torch.from_numpy(small_images(3)) / 255).bfloat16()
    assert np.array_equal(model.predict_proba(images), model.predict_proba(images.float()))
    assert np.array_equal(model.predict_proba(list(images)), model.predict_proba(list(images.float())))


LABELS: dict[str, Any] = {
    "a 0-d array": np.array(3),
    "a 0-d tensor": torch.tensor(3),
    "a number": 3,
    "one word": "cat",
    "a sparse tensor": torch.arange(40).to_sparse(),
    "a meta tensor": torch.arange(40, device="meta"),
    "huge integers": [HUGE] * 20 + [1] * 20,
    "a list of lists": np.zeros((40, 1), dtype=int),
    "a table": memoryview(np.zeros((40, 2)).data),
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS.keys())
def test_labels_that_are_none(labels: Any) -> None:
    """Row 11: huge integers and 0-d arrays: tracebacks."""
    assert refused(lambda: read_arrays(X, labels)).startswith("labels")
    assert refused(lambda: read_arrays(X, Y, true_labels=labels)).startswith("true_labels")
    assert refused(lambda: read_arrays(X, Y, test=X, test_labels=labels)).startswith("test_labels")


@pytest.mark.parametrize("classes", [5, [1, 2, 3, 4], "abcd", ["\ud800", "b", "c", "d"], [HUGE] * 4])
def test_classes_that_are_no_names(classes: Any) -> None:
    """Rows 10 and 11."""
    assert "classes" in refused(lambda: read_arrays(X, Y, classes=classes))


def test_a_batch_of_predictions_has_a_size() -> None:
    """Row 11."""
    model, images = small_model(), small_images(2)
    wrong: tuple[Any, ...] = (0, -HUGE, 1.5, "x", None)
    for size in wrong:
        assert refused(lambda size=size: model.predict_proba(images, batch_size=size)).startswith("batch_size")  # type: ignore[misc]
    assert len(model.predict_proba(images, batch_size=HUGE)) == 2


def test_padding_is_bounded_by_the_images(tmp_path: Path) -> None:
    """Rows 5 and 11: the size of the padded images overflowed."""
    settings = SETTINGS | {"crop_padding": 2**30, "out": tmp_path / "run", "progress": False}
    assert refused(lambda: train(X, Y, **settings)) == (
        "crop_padding is 1073741824: the images are 8 x 8 pixels; set a smaller one"
    )


def test_classes_may_be_an_array_of_names() -> None:
    """Row 11: numpy's arrays are lists, too."""
    assert read_arrays(X, Y, classes=np.array(list("abcd"))).classes == ("a", "b", "c", "d")  # type: ignore[arg-type]


WRONG = (HUGE, -HUGE, float("nan"), float("inf"), b"x", "\udcff", [1], np.array(3), torch.tensor(3), {"a": 1})


OF_FILES = ("path_column", "label_column", "features_column", "image_root", "annotators", "annotator_column", "labels")
NAMES = [name for name in JOB_FIELDS if name not in ("data", *OF_FILES)]  # which arrays use


@pytest.mark.parametrize("name", [*NAMES, "lr", "epochs"])
def test_settings_of_another_kind(name: str, tmp_path: Path) -> None:
    """Row 11: an integer of thousands of digits could not even be shown."""
    for wrong in WRONG:
        settings = SETTINGS | {name: wrong, "out": tmp_path / "run", "progress": False}
        assert name in refused(lambda settings=settings: train(X, Y, **settings))  # type: ignore[misc]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["out", "preset", "minutes", "overwrite", "progress"])
@pytest.mark.parametrize("wrong", [5j, b"x", [1], {"a": 1}, np.array([1, 2]), "\0"])
def test_arguments_of_another_kind(name: str, wrong: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by fuzzing: tracebacks of pathlib and of dictionaries."""
    monkeypatch.chdir(tmp_path)
    settings = SETTINGS | {"out": "run", "progress": False} | {name: wrong}
    assert name in refused(lambda: train(X, Y, **settings)) or (name, wrong) == ("preset", "\0")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("wrong", [None, 5, b"x", [1], object(), "\0"])
def test_paths_of_another_kind(wrong: Any) -> None:
    """Found by fuzzing: tracebacks of pathlib."""
    assert refused(lambda: Run.load(wrong)).endswith("it must be a path")
    assert refused(lambda: Model.from_pretrained(wrong)).endswith("it must be a path")


@pytest.mark.parametrize("wrong", [None, 5, b"x", [1], "\0", "planet"])
def test_devices_of_another_kind(wrong: Any, tmp_path: Path) -> None:
    """Found by fuzzing: a traceback of torch."""
    small_model().save_pretrained(tmp_path)
    assert "device" in refused(lambda: Model.from_pretrained(tmp_path, wrong))


def test_label_issues_keep_no_files() -> None:
    """Found by fuzzing: a TypeError that named two values of out."""
    assert refused(lambda: find_label_issues(X, Y, out="run")).startswith("out cannot be used here")
