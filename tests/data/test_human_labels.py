"""Labels that people gave to CIFAR. Oracle: the arrays that the test saved with torch, as the official files are."""

import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dividemix.data.human_labels import human_labels
from dividemix.errors import InputError

RNG = np.random.default_rng(0)
TRUE = RNG.integers(0, 10, 50)
FINE = RNG.integers(0, 100, 50)
TEN = {"clean_label": TRUE} | {
    name: np.where(RNG.random(50) < rate, (TRUE + 1) % 10, TRUE)
    for name, rate in (("aggre_label", 0.1), ("worse_label", 0.4), ("random_label1", 0.2), ("random_label2", 0.2))
}
TEN["random_label3"] = TEN["random_label1"][::-1].copy()
HUNDRED = {"clean_label": FINE, "noisy_label": (FINE + 1) % 100, "noisy_coarse_label": FINE // 5}
ALL = np.arange(50)


def save(folder: Path, name: str = "CIFAR-10_human.pt", content: Any = TEN) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(content, folder / name)
    return folder


@pytest.mark.parametrize(
    ("variant", "name"),
    [("aggregate", "aggre_label"), ("worst", "worse_label"), *((f"random{n}", f"random_label{n}") for n in (1, 2, 3))],
)
@pytest.mark.parametrize("below", ["", "data"])
def test_every_variant_is_read(tmp_path: Path, variant: str, name: str, below: str) -> None:
    save(tmp_path / below)
    assert human_labels("cifar10", variant, tmp_path, ALL, TRUE).tolist() == TEN[name].tolist()


def test_cifar100(tmp_path: Path) -> None:
    save(tmp_path, "CIFAR-100_human.pt", HUNDRED)
    labels = human_labels("cifar100", "noisy_fine", tmp_path, ALL, FINE)
    assert labels.tolist() == ((FINE + 1) % 100).tolist()


def test_some_of_the_images(tmp_path: Path) -> None:
    """With limit_train, the labels are those of the images that are left. The root may be the archive of the images."""
    save(tmp_path)
    (tmp_path / "cifar-10-python.tar.gz").touch()
    rows = np.array([3, 4, 17, 40])
    labels = human_labels("cifar10", "worst", tmp_path / "cifar-10-python.tar.gz", rows, TRUE[rows])
    assert labels.tolist() == TEN["worse_label"][rows].tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("cifar10", "worse"), "for cifar10 use human:aggregate, human:worst, human:random1"),
        (("cifar100", "worst"), "for cifar100 use human:noisy_fine"),
        (("fashion", "worst"), "exists for cifar10 and cifar100 only, not for fashion"),
        (("cifar100", "noisy_fine"), r"CIFAR-100_human\.pt: no such file: get it from the repository UCSC-REAL"),
    ],
)
def test_labels_that_there_are_not(tmp_path: Path, arguments: tuple[str, str], message: str) -> None:
    save(tmp_path)
    with pytest.raises(InputError, match=message):
        human_labels(*arguments, tmp_path, ALL, TRUE)


def test_other_images_are_noticed(tmp_path: Path) -> None:
    save(tmp_path)
    with pytest.raises(InputError, match="its true labels are not those of cifar10: the images have another order"):
        human_labels("cifar10", "worst", tmp_path, ALL, TRUE[::-1])


class Evil:
    """Runs code if it is unpickled by Python."""

    def __reduce__(self) -> Any:
        return Path.touch, (Path("ran"),)


@pytest.mark.parametrize(
    "content",
    [
        {"clean_label": TRUE},
        TEN | {"worse_label": TEN["worse_label"][:20]},
        TEN | {"worse_label": TEN["worse_label"] + 9},
        TEN | {"worse_label": TEN["worse_label"] / 2},
        TEN | {"more": Evil()},
        TEN | {"worse_label": torch.from_numpy(TEN["worse_label"])},
        [1, 2],
    ],
)
def test_other_content_is_refused_and_nothing_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    save(tmp_path, content=content)
    with pytest.raises(InputError, match=r"CIFAR-10_human\.pt: ") as caught:
        human_labels("cifar10", "worst", tmp_path, ALL, TRUE)
    assert "\n" not in str(caught.value)
    assert not Path("ran").exists()


def test_damaged_files(tmp_path: Path) -> None:
    path = save(tmp_path) / "CIFAR-10_human.pt"
    whole = path.read_bytes()
    for content in (b"", b"nonsense", whole[:500], whole[: len(whole) // 2], pickle.dumps(TEN)):
        path.write_bytes(content)
        with pytest.raises(InputError, match="damaged, or not an official file"):
            human_labels("cifar10", "worst", tmp_path, ALL, TRUE)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("other", b"x")
    with pytest.raises(InputError, match="not an official file of human labels: get it again"):
        human_labels("cifar10", "worst", tmp_path, ALL, TRUE)
