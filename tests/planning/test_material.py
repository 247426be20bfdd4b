"""From a job to its data. Oracles: counts by class, and the same data in another place."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from toys import NUM_TEST, save_toy, toy_arrays, toy_job

from dividemix.errors import InputError
from dividemix.planning.job import Job
from dividemix.planning.material import Material, gather

CPU = torch.device("cpu")


def test_held_out_samples_are_a_share_of_each_class_and_train_no_net(tmp_path: Path) -> None:
    material = gather(Job(data=str(save_toy(tmp_path)), holdout=0.2), CPU)
    assert material.holdout is not None
    assert np.bincount(material.holdout.labels).tolist() == [2, 2, 2, 2]
    assert np.bincount(material.train.labels).tolist() == [8, 8, 8, 8]
    held = np.setdiff1d(np.arange(40), material.train_index)
    np.testing.assert_array_equal(material.holdout.pixels(np.arange(8)), material.everything.pixels(held))
    np.testing.assert_array_equal(material.labels, toy_arrays()["y_train"])


def test_a_class_of_a_few_samples_stays_whole(tmp_path: Path) -> None:
    y_train = np.array([0] * 30 + [1] * 6 + [2] * 4)
    material = gather(Job(data=str(save_toy(tmp_path, y_train=y_train)), holdout=0.5), CPU)
    assert np.bincount(material.train.labels).tolist() == [15, 3, 4]


def test_the_seed_chooses_who_is_held_out(tmp_path: Path) -> None:
    def index(seed: int) -> list[int]:
        job = Job.of({"data": str(save_toy(tmp_path)), "holdout": 0.2, "seed": seed})
        chosen: list[int] = gather(job, CPU).train_index.tolist()
        return chosen

    assert index(1) == index(1) != index(2)


def test_nothing_is_held_out_unless_asked(tmp_path: Path) -> None:
    material = gather(Job(data=str(save_toy(tmp_path))), CPU)
    assert material.holdout is None
    assert material.train is material.everything


def test_the_digest_follows_the_data_not_its_place(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name in ("ant", "bee"):
        (tmp_path / "here" / name).mkdir(parents=True)
        for i in range(3):
            Image.fromarray(rng.integers(0, 255, (16, 16), dtype=np.uint8)).save(tmp_path / "here" / name / f"{i}.png")
    shutil.copytree(tmp_path / "here", tmp_path / "there")

    def digest(place: str, **settings: object) -> str:
        return gather(Job.of({"data": str(tmp_path / place), **settings}), CPU).digest

    assert digest("here") == digest("there") == digest("there", memory_gb=0.0)
    (tmp_path / "there" / "ant" / "0.png").rename(tmp_path / "there" / "bee" / "9.png")
    assert digest("here") != digest("there")


def with_trusted(folder: Path, trusted: Path, **settings: Any) -> Material:
    """The material of the folder's toy.npz and of trusted samples."""
    return gather(toy_job(folder, trusted=str(trusted), **settings), CPU)


def test_trusted_samples_are_read_in_the_size_and_with_the_classes_of_the_data(tmp_path: Path) -> None:
    """Images of 8 x 8 pixels in 4 classes; the folder has larger ones, of classes 3 and 1, in its own order."""
    pixels = {"3": (16, 16), "1": (24, 16)}
    for name, size in pixels.items():
        (tmp_path / "right" / name).mkdir(parents=True)
        for i in range(2):
            Image.new("L", size, color=50 * int(name) + i).save(tmp_path / "right" / name / f"{i}.png")
    material = with_trusted(tmp_path, tmp_path / "right", crop_padding=2, flip=False)
    assert material.trusted is not None
    assert material.sets.train is material.train
    assert material.sets.trusted is material.trusted
    assert [material.classes[label] for label in material.trusted.labels.tolist()] == ["1", "1", "3", "3"]
    shown = material.trusted.pixels(np.arange(4))
    assert shown.shape == (4, 8, 8, 1)
    assert shown[:, 0, 0, 0].tolist() == [50, 51, 150, 151]
    assert material.test is not None
    assert len(material.test.labels) == NUM_TEST  # the data's own, as without trusted samples


def test_trusted_samples_are_normalised_and_cropped_as_those_that_train(tmp_path: Path) -> None:
    """Oracle: the training images themselves, trusted."""
    trusted = tmp_path / "trusted.npz"
    np.savez(trusted, x_train=toy_arrays()["x_train"], y_train=toy_arrays()["y_train"])
    material = with_trusted(tmp_path, trusted, noise="none", crop_padding=1)
    assert material.trusted is not None
    index = [torch.arange(10)]
    for expected, found in zip(material.train.plain(index), material.trusted.plain(index), strict=True):
        torch.testing.assert_close(found, expected)
    views = [
        torch.cat(list(data.augmented(index, torch.Generator().manual_seed(0))))
        for data in (material.train, material.trusted)
    ]
    torch.testing.assert_close(views[1], views[0])


def test_noise_is_not_added_to_trusted_labels(tmp_path: Path) -> None:
    trusted = tmp_path / "trusted.npz"
    np.savez(trusted, x_train=toy_arrays()["x_train"], y_train=toy_arrays()["y_train"])
    material = with_trusted(tmp_path, trusted, noise="symmetric:0.9")
    assert material.trusted is not None
    np.testing.assert_array_equal(material.trusted.labels, toy_arrays()["y_train"])
    assert not np.array_equal(material.labels, toy_arrays()["y_train"])


def test_the_digest_follows_the_trusted_samples_not_their_place(tmp_path: Path) -> None:
    arrays = toy_arrays()
    images, labels = arrays["x_test"], arrays["y_test"]
    for name, x, y in (("a", images, labels), ("b", images[::-1], labels), ("c", images, labels[::-1])):
        (tmp_path / name).mkdir()
        np.savez(tmp_path / name / "trusted.npz", x_train=x, y_train=y)
    shutil.copytree(tmp_path / "a", tmp_path / "copy")
    digests = {name: with_trusted(tmp_path, tmp_path / name / "trusted.npz").digest for name in ("a", "b", "c", "copy")}
    assert digests["a"] == digests["copy"]
    assert len({*digests.values(), gather(toy_job(tmp_path), CPU).digest}) == 4


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"y_train": np.arange(12) % 5}, r"^trusted is .*trusted\.npz.*'4' is not a class of the training labels"),
        (
            {"x_train": np.zeros((12, 9, 9), dtype=np.uint8)},
            r"^trusted is .* images of \(9, 9, 1\), but .* are \(8, 8, 1\)",
        ),
    ],
)
def test_trusted_samples_of_another_class_or_size_are_refused(
    tmp_path: Path, arrays: dict[str, Any], message: str
) -> None:
    whole = {"x_train": toy_arrays()["x_test"], "y_train": toy_arrays()["y_test"]} | arrays
    np.savez(tmp_path / "trusted.npz", **whole)
    with pytest.raises(InputError, match=message) as caught:
        with_trusted(tmp_path, tmp_path / "trusted.npz")
    assert "\n" not in str(caught.value)


def test_without_trusted_samples_there_are_none(tmp_path: Path) -> None:
    material = gather(toy_job(tmp_path), CPU)
    assert material.trusted is None
    assert material.sets.trusted is None


def test_trusted_samples_that_are_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^trusted is .*gone\.npz': no such file"):
        with_trusted(tmp_path, tmp_path / "gone.npz")


def test_samples_know_their_place_in_the_data(tmp_path: Path) -> None:
    """Ten samples of each class, in turn; of the first eight every class has two."""
    data = str(save_toy(tmp_path))
    material = gather(Job(data=data, limit_train=8), CPU)
    np.testing.assert_array_equal(material.rows, np.arange(8))
    assert material.num_given == 40
    y_train = np.repeat(np.arange(4), 10)
    material = gather(Job(data=str(save_toy(tmp_path, y_train=y_train)), limit_train=8), CPU)
    assert material.rows.tolist() == [0, 1, 10, 11, 20, 21, 30, 31]
    assert material.digest == gather(Job(data=data, limit_train=8), CPU).digest
