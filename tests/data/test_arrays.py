"""Data from Python. Oracle: the array that every form was made of."""

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from pictures import encoded, pixels
from PIL import Image

from dividemix.data.image_files import ImageFiles
from dividemix.data.readers.arrays import read_arrays
from dividemix.data.source import Skipped
from dividemix.errors import InputError

IMAGES = np.stack([pixels(number, 6, 8) for number in range(6)])
GREY = np.ascontiguousarray(IMAGES[..., :1])
LABELS = [0, 1, 2, 0, 1, 2]
FLOAT = IMAGES.astype(np.float32) / 255
FORMS: dict[str, Any] = {
    "uint8": IMAGES,
    "int64": IMAGES.astype(np.int64),
    "float32": FLOAT,
    "float64": IMAGES / 255,
    "channels first": IMAGES.transpose(0, 3, 1, 2),
    "tensor": torch.from_numpy(IMAGES),
    "tensor of floats, channels first": torch.from_numpy(FLOAT).permute(0, 3, 1, 2).requires_grad_(),
    "list of arrays": list(IMAGES),
    "tuple of tensors": tuple(torch.from_numpy(FLOAT)),
    "Pillow": [Image.fromarray(image) for image in IMAGES],
    "bytes": [encoded(image) for image in IMAGES],
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_images(form: str) -> None:
    source = read_arrays(FORMS[form], LABELS, test=FORMS[form], test_labels=LABELS[::-1], name="mine")
    np.testing.assert_array_equal(source.train_samples, IMAGES)
    np.testing.assert_array_equal(source.test_samples, IMAGES)
    assert source.train_labels.tolist() == LABELS
    assert source.test_labels is not None
    assert source.test_labels.tolist() == LABELS[::-1]
    assert source.classes == ("0", "1", "2")
    assert source.name == "mine"


@pytest.mark.parametrize(
    "images", [GREY, GREY[..., 0], GREY.transpose(0, 3, 1, 2), [Image.fromarray(g[..., 0]) for g in GREY]]
)
def test_grey_images(images: Any) -> None:
    np.testing.assert_array_equal(read_arrays(images, LABELS).train_samples, GREY)


def test_grey_images_three_pixels_high_are_no_riddle() -> None:
    images = np.arange(4 * 3 * 5, dtype=np.uint8).reshape(4, 3, 5)
    np.testing.assert_array_equal(read_arrays(images, [0, 1, 0, 1]).train_samples[..., 0], images)


def test_paths(tmp_path: Path) -> None:
    for number, image in enumerate(IMAGES):
        (tmp_path / f"{number}.png").write_bytes(encoded(image))
    (tmp_path / "3.png").write_bytes(b"bad")
    paths = [str(tmp_path / f"{number}.png") for number in range(6)]
    for form in (paths, [Path(path) for path in paths], np.array(paths)):
        source = read_arrays(form, LABELS)
        np.testing.assert_array_equal(source.train_samples, IMAGES[[0, 1, 2, 4, 5]])
        assert source.paths == tuple(paths[:3] + paths[4:])
        assert source.skipped == (Skipped(paths[3], "not an image, or damaged at the start"),)
        assert source.rows.tolist() == [0, 1, 2, 4, 5]
        assert source.num_given == 6


def test_arrays_of_different_sizes_are_made_one_size() -> None:
    images = [pixels(0, 20, 30), pixels(1, 40, 16), pixels(2, 24, 24)]
    assert read_arrays(images, [0, 1, 1]).train_samples.shape == (3, 16, 16, 3)  # shorter sides 20, 16, 24: 20 to even
    assert read_arrays(images, [0, 1, 1], image_size=12).train_samples.shape == (3, 12, 12, 3)


@pytest.mark.parametrize(
    ("labels", "classes", "expected"),
    [
        (["b", "a", "b10", "b9", "a", "b"], None, (("a", "b", "b9", "b10"), [1, 0, 3, 2, 0, 1])),
        ([7, 3, 7, 3, 10, 10], None, (("3", "7", "10"), [1, 0, 1, 0, 2, 2])),
        (np.array([0.0, 1, 0, 1, 0, 1]), None, (("0", "1"), [0, 1, 0, 1, 0, 1])),
        (torch.tensor([2, 0, 2, 0, 2, 0]), ("x", "y", "z"), (("x", "y", "z"), [2, 0, 2, 0, 2, 0])),
        (["z", "x", "z", "x", "z", "x"], ("x", "y", "z"), (("x", "y", "z"), [2, 0, 2, 0, 2, 0])),
        (np.array(["q", "p"] * 3, dtype=object), None, (("p", "q"), [1, 0] * 3)),
    ],
)
def test_labels(labels: Any, classes: tuple[str, ...] | None, expected: tuple[tuple[str, ...], list[int]]) -> None:
    source = read_arrays(IMAGES, labels, classes=classes, true_labels=labels)
    assert (source.classes, source.train_labels.tolist()) == expected
    assert source.true_labels is not None
    assert source.true_labels.tolist() == source.train_labels.tolist()


class Dataset:
    """A stand-in with the interface of datasets.Dataset: columns by name, rows by number, features."""

    def __init__(self, columns: dict[str, Any], features: dict[str, Any] | None = None) -> None:
        self._columns = columns
        self.features = features
        self.column_names = list(columns)
        self.fetched: list[int] = []

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            return self._columns[key]
        self.fetched.append(key)
        row = {name: column[key] for name, column in self._columns.items()}
        if isinstance(row.get("image"), bytes):  # as the image feature decodes
            row["image"] = Image.open(io.BytesIO(row["image"]))
        return row


CLASS_LABEL = SimpleNamespace(names=["x", "y", "z"])


@pytest.mark.parametrize("memory_gb", [4, 0])
def test_a_data_set_with_columns(memory_gb: float) -> None:
    contents = [encoded(image) for image in IMAGES]
    contents[4] = b"not an image"
    data = Dataset({"image": contents, "label": LABELS}, {"label": CLASS_LABEL, "image": object()})
    test = Dataset({"image": contents[:3], "label": [2, 2, 0]})
    source = read_arrays(data, test=test, memory_gb=memory_gb)
    kept = [0, 1, 2, 3, 5]
    assert isinstance(source.train_samples, ImageFiles) == (memory_gb == 0)
    np.testing.assert_array_equal(source.train_samples[:], IMAGES[kept])
    assert source.test_samples is not None
    assert source.test_labels is not None
    np.testing.assert_array_equal(source.test_samples[:], IMAGES[:3])
    assert source.classes == ("x", "y", "z")
    assert source.train_labels.tolist() == [LABELS[i] for i in kept]
    assert source.test_labels.tolist() == [2, 2, 0]
    assert [one.path for one in source.skipped] == ["image 4"]
    assert source.skipped[0].reason.startswith("cannot be fetched: cannot identify image file")


@pytest.mark.parametrize(
    "cells",
    [
        [{"bytes": encoded(image), "path": None} for image in IMAGES],
        list(IMAGES),
        [Image.fromarray(image) for image in IMAGES],
    ],
)
def test_cells_of_a_data_set(cells: list[Any]) -> None:
    data = Dataset({"img": cells, "fine": list("abcabc")})
    source = read_arrays(data, label_column="fine")
    np.testing.assert_array_equal(source.train_samples, IMAGES)
    assert source.classes == ("a", "b", "c")
    named = Dataset({"picture": cells, "fine": list("abcabc")})
    np.testing.assert_array_equal(
        read_arrays(named, LABELS, path_column="picture", label_column="fine").train_samples, IMAGES
    )


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((IMAGES,), {}, "labels are missing"),
        ((IMAGES, LABELS[:-1]), {}, "labels are 5, but there are 6 samples"),
        ((IMAGES, [0, 1, None, 0, 1, 2]), {}, r"labels\[2\] is None: must be text or an integer"),
        ((IMAGES, [[0]] * 6), {}, r"labels\[0\] is"),
        (
            (IMAGES, [0, 1, 5, 0, 1, 2]),
            {"classes": ("a", "b", "c")},
            r"labels\[2\] is 5: must be a class's name or number, 0 to 2",
        ),
        ((IMAGES, [0, 1, -1, 0, 1, 2]), {"classes": ("a", "b", "c")}, r"labels\[2\] is -1"),
        ((IMAGES, LABELS), {"classes": ("a", "b", "a")}, "two of the 3 classes have the same name"),
        ((IMAGES, [1] * 6), {}, "has 1 classes"),
        ((IMAGES, LABELS), {"true_labels": [0, 1, 2, 9, 1, 2]}, "true_labels: '9' is not a class"),
        ((IMAGES, LABELS), {"test_labels": [1]}, "test_labels are given, but test is not"),
        ((IMAGES, [0, 1, 0.5, 1, 0, 1]), {}, r"labels\[2\] is 0.5: must be text or an integer"),
        ((IMAGES, np.array([0, 1, 0, 1, 0, 1.5], np.float32)), {}, r"labels\[5\] is 1.5: must be text or an integer"),
        ((IMAGES, [[0, 0.5]] * 6), {}, r"labels\[0\]\[1\] is 0.5: must be text or an integer"),
        ((IMAGES, LABELS), {"test": IMAGES}, "test_labels are missing"),
        ((IMAGES, LABELS), {"test": IMAGES, "test_labels": [8] * 6}, "test_labels: '8' is not a class"),
        ((IMAGES, LABELS), {"test": IMAGES[:, :4], "test_labels": LABELS}, "test_images has images of"),
        ((IMAGES, LABELS), {"image_size": 16}, "image_size is 16, but data is an array"),
        (([*FORMS["Pillow"]], LABELS), {"image_size": 4}, "image_size is 4"),
        ((IMAGES, LABELS), {"memory_gb": -1}, "memory_gb"),
        ((IMAGES.reshape(-1), [0, 1] * 432), {}, r"data has shape \(864,\)"),
        ((np.zeros((6, 3, 8, 3), np.uint8), LABELS), {}, "ambiguous channel order"),
        ((np.zeros((6, 8, 8, 4), np.uint8), LABELS), {}, "with 1 or 3 channels"),
        ((FLOAT * 400, LABELS), {}, "data has float values from .* must be from 0 to 1, or from 0 to 255$"),
        ((FLOAT - 1, LABELS), {}, "must be from 0 to 1, .* if they are normalised, give the images before that"),
        ((FLOAT * 1.03, LABELS), {}, "which of them is unclear: scale them, or convert them to uint8"),
        ((FLOAT * 16, LABELS), {}, "which of them is unclear"),
        ((np.full((6, 8, 8), np.nan), LABELS), {}, "from nan to nan"),
        ((IMAGES.astype(int) * 2, LABELS), {}, "must be from 0 to 255"),
        ((IMAGES > 3, LABELS), {}, "data has type bool"),
        ((IMAGES * 1j, LABELS), {}, "data has type complex128"),
        ((IMAGES[:0], []), {}, "data|labels"),
        (("photos", LABELS), {}, "data is str: must be an array, a tensor, a list"),
        ((7, LABELS), {}, "data is int"),
        (([1, 2, 3, 4, 5, 6], LABELS), {}, r"data\[0\] is int: must be a path, bytes, a Pillow image or an array"),
        (([np.zeros((8, 8, 5), np.uint8), *FORMS["Pillow"][1:]], LABELS), {}, r"data\[0\] has shape \(8, 8, 5\)"),
        (([b"x"] * 6, LABELS), {}, "too many images cannot be used, 6 of 6"),
        (([], []), {}, "has no images"),
        (
            (Dataset({"a": [1], "label": [0]}),),
            {},
            "data has no column 'image' or 'img' or 'path': it has 'a', 'label'",
        ),
        ((Dataset({"image": [1], "kind": [0]}),), {}, "data has no column 'label'"),
        ((Dataset({"image": [b""], "label": [0]}),), {"path_column": "x"}, "data has no column 'x'"),
        ((Dataset({"image": [1] * 6, "label": LABELS}),), {}, r"data\[\d\]\['image'\] is int"),
    ],
)
def test_each_violation_is_one_line_that_names_the_argument(
    arguments: tuple[Any, ...], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_arrays(*arguments, **options)
    assert "\n" not in str(caught.value)
