"""What Python programs have: pairs, data sets of torch, tables, floats. Oracle: the same pixels as one uint8 array."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset, IterableDataset, Subset, TensorDataset

from dividemix.data.readers.arrays import read_arrays
from dividemix.data.source import Source
from dividemix.errors import InputError

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (6, 8, 8, 3), dtype=np.uint8)
IMAGES[0], IMAGES[1, 0, 0] = 0, 255  # one is black, so that it does not say what white is
LABELS = [0, 1, 0, 1, 1, 0]
TENSORS = torch.from_numpy(IMAGES).permute(0, 3, 1, 2).float() / 255


class Pictures(Dataset[Any]):
    """As torchvision's data sets: pairs of an image and a class number, and the names of the classes."""

    classes = ("cat", "dog")

    def __init__(self, images: Any, labels: Any = LABELS):
        self.images, self.labels = images, labels

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, row: int) -> Any:
        return self.images[row], self.labels[row]


def check(source: Source, classes: tuple[str, ...] = ("0", "1")) -> None:
    np.testing.assert_array_equal(source.train_samples, IMAGES)
    assert source.train_labels.tolist() == LABELS
    assert source.classes == classes


PILLOW = [Image.fromarray(image) for image in IMAGES]


@pytest.mark.parametrize("images", [PILLOW, list(TENSORS), list(TENSORS * 255), list(IMAGES)])
def test_a_list_of_pairs(images: list[Any]) -> None:
    check(read_arrays(list(zip(images, LABELS, strict=True))))
    check(read_arrays([[image, str(label)] for image, label in zip(images, LABELS, strict=True)]))


def test_pairs_of_a_path_and_a_name(tmp_path: Path) -> None:
    for number, image in enumerate(PILLOW):
        image.save(tmp_path / f"{number}.png")
    pairs = [(f"{number}.png", "ab"[label]) for number, label in enumerate(LABELS)]
    source = read_arrays(pairs, image_root=tmp_path)
    check(source, ("a", "b"))
    assert source.paths == tuple(f"{number}.png" for number in range(6))


@pytest.mark.parametrize("images", [PILLOW, TENSORS, TENSORS * 255, IMAGES])
def test_a_data_set_of_torch(images: Any) -> None:
    check(read_arrays(Pictures(images)), ("cat", "dog"))
    check(read_arrays(Subset(Pictures(images), range(6))))


def test_a_data_set_of_tensors() -> None:
    check(read_arrays(TensorDataset(TENSORS, torch.tensor(LABELS))))
    vectors = TensorDataset(torch.arange(24.0).reshape(6, 4), torch.tensor(LABELS))
    source = read_arrays(vectors)
    np.testing.assert_array_equal(source.train_samples, np.arange(24.0).reshape(6, 4))
    assert source.train_labels.tolist() == LABELS


def test_a_data_set_may_be_for_testing_and_labels_may_be_given() -> None:
    source = read_arrays(Pictures(PILLOW), test=Pictures(PILLOW[:2]))
    np.testing.assert_array_equal(source.test_samples, IMAGES[:2])
    source = read_arrays(Pictures(PILLOW), ["x", "y"] * 3, classes=["x", "y"])
    assert source.train_labels.tolist() == [0, 1] * 3


class Endless(IterableDataset[Any]):
    """A data set without numbers and length."""

    def __iter__(self) -> Any:
        return iter([(PILLOW[0], 0)])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (Endless(), "data is Endless"),
        (Pictures(PILLOW, LABELS[:3]), r"data\[3\] cannot be fetched: IndexError: list index out of range"),
        (TensorDataset(TENSORS), r"data\[0\] is tuple: must be a pair \(sample, label\)"),
        (Pictures((TENSORS - 0.5) / 0.25), "if they are normalised, give the images before that"),
        (Pictures(TENSORS * 3), "which of them is unclear"),
        (Pictures([None] * 6), r"data\[\d\] is NoneType"),
    ],
)
def test_data_sets_that_cannot_be_read(data: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_arrays(data)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_floats_from_0_to_255(dtype: Any) -> None:
    check(read_arrays(IMAGES.astype(dtype), LABELS))
    check(read_arrays(list(IMAGES.astype(dtype)), LABELS))


def test_all_images_decide_what_white_is() -> None:
    """Of a list of different sizes, an image with no level above 1 is nearly black, not nearly white."""
    dark, bright = np.ones((9, 8, 3), np.float32), IMAGES[2].astype(np.float32)
    source = read_arrays([dark, bright, dark], [0, 1, 0], image_size=8)
    assert isinstance(source.train_samples, np.ndarray)
    assert source.train_samples[0].max() == 1
