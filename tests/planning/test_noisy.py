"""Noise of a job. Oracles: the arrays that were saved; what does not change; a second run with the same seed."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from toys import NUM_TRAIN, save_toy, toy_arrays, toy_job, trained

from dividemix.data.noise import parse_noise
from dividemix.data.readers.npz import read_npz
from dividemix.errors import InputError
from dividemix.planning.material import gather
from dividemix.planning.noisy import Noisy, with_noise
from dividemix.runs.run import Run

CPU = torch.device("cpu")


@pytest.fixture
def outsiders(tmp_path: Path) -> Path:
    """Thirty white images; the toy's have no level above 220."""
    np.savez(tmp_path / "white.npz", x_train=np.full((30, 8, 8), 255, np.uint8), y_train=np.arange(30) % 2)
    return tmp_path / "white.npz"


def noisy(folder: Path, noise: str, seed: int = 1) -> Noisy:
    job = toy_job(folder, noise=noise, seed=seed)
    return with_noise(job, read_npz(Path(job.data)), parse_noise(noise))


def test_outsiders_replace_images_and_keep_labels(tmp_path: Path, outsiders: Path) -> None:
    before = toy_arrays()
    found = noisy(tmp_path, f"open_set:0.3:{outsiders}")
    images = found.source.train_samples[..., 0]
    is_outside = (np.asarray(images) == 255).all(axis=(1, 2))
    assert is_outside.sum() == round(0.3 * NUM_TRAIN)
    assert found.labels.tolist() == before["y_train"].tolist()
    assert found.true_labels is not None
    assert found.true_labels.tolist() == np.where(is_outside, -1, before["y_train"]).tolist()
    np.testing.assert_array_equal(images[~is_outside], before["x_train"][~is_outside])
    np.testing.assert_array_equal(found.source.test_samples, before["x_test"][..., np.newaxis])
    assert found.noise is not None
    assert found.noise.true_rate == pytest.approx(0.3)


def test_outsiders_depend_on_the_seed_alone(tmp_path: Path, outsiders: Path) -> None:
    one, same, other = (noisy(tmp_path, f"open_set:0.5:{outsiders}", seed).true_labels for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert one is not None
    assert other is not None
    assert one.tolist() != other.tolist()


def test_outsiders_from_a_folder_get_the_size_of_the_images(tmp_path: Path) -> None:
    for number in range(4):
        path = tmp_path / "photos" / "ab"[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (20, 30), "white").save(path)
    found = noisy(tmp_path, f"open_set:0.5:{tmp_path / 'photos'}")
    assert ((np.asarray(found.source.train_samples) == 255).all(axis=(1, 2, 3))).sum() == NUM_TRAIN // 2


def test_a_run_with_outsiders_resumes_and_counts_them_as_wrong(tmp_path: Path, outsiders: Path) -> None:
    job = toy_job(tmp_path, noise=f"open_set:0.3:{outsiders}", epochs=3)
    run = trained(tmp_path / "run", job)
    assert run.summary()["noise"]["true"] == pytest.approx(0.3)
    again = Run.load(tmp_path / "run")
    assert again.material.digest == run.material.digest
    wrong = run.material.labels != run.material.true_labels
    assert wrong.sum() == round(0.3 * NUM_TRAIN)


@pytest.mark.parametrize(
    ("noise", "message"),
    [
        ("open_set:0.3", "open_set is incomplete.*: use open_set:RATE:DATA"),
        ("open_set:2:x", "the rate of open_set noise is 2"),
        ("open_set:0.3:none", "'none': no such file or folder"),
        ("open_set:0.3:{}/other.npz", r"the images of .* are \(9, 9, 1\), those to train on are \(8, 8, 1\); resize"),
        ("human", "'human' is incomplete: use human:worst"),
        ("human:worst", "exists for cifar10 and cifar100 only, not for"),
    ],
)
def test_noise_that_makes_no_sense(tmp_path: Path, noise: str, message: str) -> None:
    np.savez(tmp_path / "other.npz", x_train=np.zeros((4, 9, 9), np.uint8), y_train=np.arange(4) % 2)
    save_toy(tmp_path)
    with pytest.raises(InputError, match=message):
        gather(toy_job(tmp_path, noise=noise.format(tmp_path)), CPU)
