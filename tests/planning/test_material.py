"""From a job to its data. Oracles: counts by class, and the same data in another place."""

import shutil

import numpy as np
import torch
from PIL import Image
from toys import save_toy, toy_arrays

from dividemix.planning.job import Job
from dividemix.planning.material import gather

CPU = torch.device("cpu")


def test_held_out_samples_are_a_share_of_each_class_and_train_no_net(tmp_path) -> None:
    material = gather(Job(data=str(save_toy(tmp_path)), holdout=0.2), CPU)
    assert material.holdout is not None
    assert np.bincount(material.holdout.labels).tolist() == [2, 2, 2, 2]
    assert np.bincount(material.train.labels).tolist() == [8, 8, 8, 8]
    held = np.setdiff1d(np.arange(40), material.train_index)
    np.testing.assert_array_equal(material.holdout.pixels(np.arange(8)), material.everything.pixels(held))
    np.testing.assert_array_equal(material.labels, toy_arrays()["y_train"])


def test_a_class_of_a_few_samples_stays_whole(tmp_path) -> None:
    y_train = np.array([0] * 30 + [1] * 6 + [2] * 4)
    material = gather(Job(data=str(save_toy(tmp_path, y_train=y_train)), holdout=0.5), CPU)
    assert np.bincount(material.train.labels).tolist() == [15, 3, 4]


def test_the_seed_chooses_who_is_held_out(tmp_path) -> None:
    def index(seed: int) -> list[int]:
        job = Job.of({"data": str(save_toy(tmp_path)), "holdout": 0.2, "seed": seed})
        return gather(job, CPU).train_index.tolist()

    assert index(1) == index(1) != index(2)


def test_nothing_is_held_out_unless_asked(tmp_path) -> None:
    material = gather(Job(data=str(save_toy(tmp_path))), CPU)
    assert material.holdout is None
    assert material.train is material.everything


def test_the_digest_follows_the_data_not_its_place(tmp_path) -> None:
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


def test_samples_know_their_place_in_the_data(tmp_path) -> None:
    """Ten samples of each class, in turn; of the first eight every class has two."""
    data = str(save_toy(tmp_path))
    material = gather(Job(data=data, limit_train=8), CPU)
    np.testing.assert_array_equal(material.rows, np.arange(8))
    assert material.num_given == 40
    y_train = np.repeat(np.arange(4), 10)
    material = gather(Job(data=str(save_toy(tmp_path, y_train=y_train)), limit_train=8), CPU)
    assert material.rows.tolist() == [0, 1, 10, 11, 20, 21, 30, 31]
    assert material.digest == gather(Job(data=data, limit_train=8), CPU).digest
