"""What a user can get wrong with dividemix train: one line that says what is wrong, exit code 2, nothing changed."""

import io
import os
import pickle
import re
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toys import NUM_TRAIN, SETTINGS, save_toy, toy_arrays
from workshop import fail

pytestmark = pytest.mark.usefixtures("workshop")

Make = Callable[[Path], list[str]]  # puts what is wrong into a folder and returns the words of the command line


def npz(**changes: Any) -> Make:
    """Train on toy data with these changes."""

    def make(folder: Path) -> list[str]:
        save_toy(folder, **changes)
        return ["toy.npz"]

    return make


def flags(*words: str) -> Make:
    """Train on the toy data with these words."""
    return lambda folder: ["toy.npz", *words]


def words(*words: str) -> Make:
    """Train with these words alone."""
    return lambda folder: list(words)


def text(name: str, content: str | bytes, *words: str) -> Make:
    """Train with these words next to a file of this content."""

    def make(folder: Path) -> list[str]:
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return list(words)

    return make


def labels(**changes: Any) -> Any:
    """The toy's training labels with some changed: index_7=9."""
    changed = toy_arrays()["y_train"].astype(changes.pop("dtype", np.int64))
    for name, value in changes.items():
        changed[int(name.removeprefix("index_"))] = value
    return changed


def cifar(damage: Callable[[bytes], bytes] = lambda content: content, **batches: bytes) -> Make:
    """Train on a CIFAR-10 archive of a few images, some of its batches replaced, its bytes damaged."""

    def make(folder: Path) -> list[str]:
        written = io.BytesIO()
        with tarfile.open(fileobj=written, mode="w:gz") as archive:
            for name in [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]:
                rng = np.random.default_rng(0)
                rows = rng.integers(0, 256, (4, 3072), dtype=np.uint8)
                batch = batches.get(name) or pickle.dumps({"data": rows, "labels": [0, 1, 2, 3]}, 2)
                member = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
                member.size = len(batch)
                archive.addfile(member, io.BytesIO(batch))
        (folder / "cifar-10-python.tar.gz").write_bytes(damage(written.getvalue()))
        return ["cifar10", "--root", "cifar-10-python.tar.gz"]

    return make


def flipped(content: bytes) -> bytes:
    """The bytes with one bit in the middle turned over."""
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 16]) + content[middle + 1 :]


class Hostile:
    """A pickle that leaves a file where it is loaded."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch owned",)


MATRIX = ["--noise", "matrix:flips.csv"]


IDENTITY = "1 0 0 0\n0 1 0 0\n0 0 1 0\n"


MISTAKES: dict[str, tuple[Make, str]] = {
    "missing file": (words("nowhere.npz"), "'nowhere.npz': no such file"),
    "missing root": (words("cifar10", "--root", "nowhere"), "nowhere: no such file or folder"),
    "no root": (words("cifar10"), "cifar10 needs --root"),
    "truncated archive": (cifar(lambda content: content[:-50]), "cifar-10-python.tar.gz: truncated, corrupted"),
    "archive cut in half": (cifar(lambda content: content[: len(content) // 2]), "truncated, corrupted"),
    "corrupted archive": (cifar(flipped), "cifar-10-python.tar.gz: "),
    "no archive at all": (cifar(lambda content: b"<html>404</html>"), "not a .tar.gz"),
    "truncated npz": (text("toy.npz", b"PK\x03\x04 and no more", "toy.npz"), "toy.npz: not an .npz file, or cut short"),
    "hostile pickle": (cifar(data_batch_2=pickle.dumps(Hostile(), 2)), "system'"),
    "hostile pickle in a batch": (
        cifar(test_batch=pickle.dumps({"data": Hostile(), "labels": [0]}, 4)),
        "only arrays of integers are read",
    ),
    "hostile pickle in an npz": (npz(x_train=np.array([Hostile()], dtype=object)), "toy.npz: .*Python objects"),
    "float images": (npz(x_train=toy_arrays()["x_train"] / 255), "x_train has type float64: must be uint8"),
    "flat images": (
        npz(x_train=np.zeros((NUM_TRAIN, 64), np.uint8)),
        r"x_test has images, but the training samples are vectors",
    ),
    "four channels": (npz(x_train=np.zeros((NUM_TRAIN, 8, 8, 4), np.uint8)), "1 or 3 channels"),
    "test images of another size": (npz(x_test=np.zeros((12, 9, 8), np.uint8)), "x_test has images of"),
    "label out of range": (npz(y_train=labels(index_7=255)), "y_train has label 255"),
    "test label out of range": (npz(y_test=np.full(12, 255)), "y_test has label 255"),
    "label beyond the names": (
        npz(classes=np.array(["a", "b", "c"])),
        "y_train has label 3: labels must be from 0 to 2, as there are 3 classes: correct the label, or name all",
    ),
    "test label beyond the names": (
        npz(classes=np.array(["a", "b", "c", "d"]), y_test=np.full(12, 4)),
        "y_test has label 4",
    ),
    "cifar label out of range": (
        cifar(data_batch_1=pickle.dumps({"data": np.zeros((1, 3072), np.uint8), "labels": [10]}, 2)),
        "data_batch_1: labels has label 10",
    ),
    "negative label": (npz(y_train=labels(index_0=-1)), "y_train has label -1"),
    "fractional label": (npz(y_train=labels(dtype=np.float64, index_3=0.5)), "y_train has 0.5"),
    "nan as a label": (npz(y_train=labels(dtype=np.float64, index_3=np.nan)), "y_train has nan"),
    "labels of another length": (npz(y_train=labels()[:-1]), r"y_train has shape \(39,\)"),
    "test labels of another length": (npz(y_test=np.zeros(13, int)), r"y_test has shape \(13,\)"),
    "true labels of another length": (npz(y_true=labels()[1:]), r"y_true has shape \(39,\)"),
    "one class": (npz(y_train=np.zeros(NUM_TRAIN, int), y_test=np.zeros(12, int)), "at least two classes"),
    "one class in training": (npz(y_train=np.ones(NUM_TRAIN, int)), "at least two classes"),
    "one sample": (npz(x_train=np.zeros((1, 8, 8), np.uint8), y_train=np.zeros(1, int)), "at least two"),
    "no sample": (npz(x_train=np.zeros((0, 8, 8), np.uint8), y_train=np.zeros(0, int)), "has no pixels"),
    "less than a sample for each class": (flags("--limit_train", "3"), "limit_train is 3: must be at least 4"),
    "unknown data set": (
        words("nonsense"),
        "'nonsense': no such file or folder. Give a folder .*, .npz or .tar file; built-in data sets: fashion,",
    ),
    "nearly a data set": (words("cifar11"), "'cifar11': no such file or folder: did you mean 'cifar10'"),
    "unknown preset": (flags("--preset", "best"), "unknown preset 'best': the presets are default, cifar10-sym-20"),
    "unknown net": (flags("--net", "resnet9000"), "unknown net 'resnet9000': use .*resnet50"),
    "unlike any net": (flags("--net", "tower"), "unknown net 'tower': use .*small_cnn"),
    "net that cannot be imported": (flags("--net", "no_such_module:make"), "'no_such_module:make' cannot be imported"),
    "net that is none": (flags("--net", "os:getcwd"), "net 'os:getcwd' does not fit"),
    "unknown flag": (flags("--lamda_u", "3"), "unknown flag --lamda_u: did you mean --lambda_u"),
    "unlike any flag": (flags("--xyzzy=3"), "unknown flag --xyzzy"),
    "unknown method": (
        flags("--method", "magic"),
        "unknown method 'magic': the methods are dividemix, robust, cross_entropy",
    ),
    "unknown device": (flags("--device", "abacus"), "unknown device 'abacus': use auto, cpu"),
    "unknown noise kind": (flags("--noise", "gauss:0.5"), "noise 'gauss:0.5' is unknown: use .*symmetric:RATE"),
    "noise without its map": (flags("--noise", "asymmetric:0.4"), "does not say which classes are similar"),
    "rate above one": (
        flags("--noise", "symmetric:1.5"),
        "rate of symmetric noise is 1.5: must be a number from 0 to 1",
    ),
    "rate in percent": (flags("--noise", "symmetric:50"), "as in symmetric:0.4; for 50 % write 0.5"),
    "rate below zero": (flags("--noise", "pair_flip:-0.1"), "rate of pair_flip noise is -0.1"),
    "rate nan": (flags("--noise", "symmetric:nan"), "rate of symmetric noise is nan"),
    "rate in words": (flags("--noise", "symmetric:half"), "rate of symmetric noise is 'half'"),
    "no rate": (flags("--noise", "symmetric"), "incomplete: use symmetric:RATE"),
    "matrix missing": (flags(*MATRIX), "flips.csv cannot be read"),
    "matrix rows that do not sum to 1": (
        text("flips.csv", IDENTITY + "0.1 0 0 0.8\n", "toy.npz", *MATRIX),
        "flips.csv: row 4 sums to 0.9; every row must sum to 1",
    ),
    "matrix of another size": (text("flips.csv", IDENTITY, "toy.npz", *MATRIX), r"shape \(3, 4\): must be \(4, 4\)"),
    "matrix with a negative number": (
        text("flips.csv", IDENTITY + "-1 1 1 0\n", "toy.npz", *MATRIX),
        "row 4 has -1; must be numbers from 0 to 1",
    ),
    "missing config": (words("--config", "c.yaml"), "c.yaml: cannot be read"),
    "config that is no YAML": (text("c.yaml", "lr: [", "--config", "c.yaml"), "c.yaml: not YAML"),
    "config with an unknown name": (
        text("c.yaml", "lamda_u: 3", "--config", "c.yaml"),
        "c.yaml: unknown setting 'lamda_u': did you mean lambda_u",
    ),
    "config with a list as data": (text("c.yaml", "data: [a, b]", "--config", "c.yaml"), r"data is \['a', 'b'\]"),
    "config with a number as noise": (text("c.yaml", "noise: 0.5", "toy.npz", "--config", "c.yaml"), "noise is 0.5"),
    "config with a list as method": (
        text("c.yaml", "method: [a]", "toy.npz", "--config", "c.yaml"),
        r"method is \['a'\]: it must be text",
    ),
    "config with a number as root": (text("c.yaml", "root: 5", "toy.npz", "--config", "c.yaml"), "root is 5"),
    "number out of range": (flags("--lr", "-1"), "lr is -1.0: it must be a number > 0"),
    "number that is none": (flags("--lr", "fast"), "lr is 'fast': it must be a number > 0"),
    "more warm-up than epochs": (flags("--epochs", "1", "--warmup_epochs", "2"), "warmup_epochs is 2"),
    "neither true nor false": (flags("--flip", "maybe"), "flip is 'maybe': it must be true or false"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_reported_in_one_line_and_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], mistake: str
) -> None:
    make, message = MISTAKES[mistake]
    settings = {name: value for name, value in SETTINGS.items() if f"--{name}" not in make(tmp_path)}
    common = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
    line = fail(capsys, ["train", *common, *make(tmp_path), "--out", "run"])
    assert re.search(message, line), line


# Words of a command whose --out has a run: what is wrong otherwise must be said first, as it is without that run.
BESIDES_THE_RUN = [
    ["--test", "nowhere.npz"],
    ["--test", "toy.npz"],
    ["--method", "reweight", "--trusted", "nowhere.npz"],
    ["--weights", "nowhere.pth"],
    ["--weights", "toy.npz", "--pretrained", "true"],
    ["--net", "nonsense"],
    ["--net", "nowhere.module:net"],
    ["--device", "nonsense"],
    ["--noise", "symmetrical:0.5"],
    ["--noise", "symmetric:2"],
    ["--noise", "matrix:nowhere.csv"],
    ["--noise", "file:nowhere.json"],
    ["--noise", "human:worst"],
    ["--noise", "open_set:0.3:nowhere"],
    ["--labels", "nowhere.npy"],
    ["--test_labels", "nowhere.npy"],
    ["--test_labels", "toy.npz"],
    ["--test", "nowhere"],
    ["--target", "label", "--test", "empty"],
    ["--text_column", "text", "--test", "empty"],
    ["--root", "nowhere"],
    ["--image_root", "nowhere"],
    ["--image_size", "32"],
    ["--encoder", "nonsense:model"],
    ["--text_column", "text", "--features_column", "vector"],
    ["--annotators", "a,b"],
    ["--method", "reweight", "--kernels", "own"],
    ["--compile", "always", "--sync_batchnorm", "true"],
    ["--compile", "always", "--reproducible", "true"],
]


@pytest.mark.parametrize("preset", ["default", "fashion"])
@pytest.mark.parametrize("words", BESIDES_THE_RUN, ids=" ".join)
def test_a_run_that_exists_hides_no_other_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], preset: str
) -> None:
    """The user removed the run, and only then read what else was wrong. The oracle is the same without the run."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.yaml").write_text("data: toy.npz")
    (tmp_path / "empty").mkdir()
    command = ["train", "toy.npz", "--preset", preset, *words]
    assert fail(capsys, [*command, "--out", "run"]) == fail(capsys, [*command, "--out", "new"])
    assert "run has a run already" in fail(capsys, ["train", "toy.npz", "--preset", preset, "--out", "run"])
