"""dividemix train --resume against a run that was never stopped; and what is not resumed."""

import contextlib
from pathlib import Path

import numpy as np
import pytest
from toys import save_toy, settled, toy_arrays
from workshop import QUICK, fail, succeed, tree_here

from dividemix.cli import main

pytestmark = pytest.mark.usefixtures("workshop")


def test_resume_without_a_run_starts_it(tmp_path: Path) -> None:
    succeed(*QUICK, "--out", "straight")
    succeed(*QUICK, "--out", "resumed", "--resume")
    assert settled(tmp_path / "resumed") == settled(tmp_path / "straight")


def test_a_run_resumes_from_its_directory_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    succeed(*QUICK, "--out", "straight")
    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(RuntimeError):
        patch.setattr("dividemix.display.epoch_line", _stop)
        main(["train", *QUICK, "--out", "stopped"])
    assert "stopped/summary.json" not in tree_here()
    succeed("--resume", "--out", "stopped")
    assert "resumed after epoch 1" in capsys.readouterr().out
    assert settled(tmp_path / "stopped") == settled(tmp_path / "straight")


def _stop(*_: object) -> str:
    raise RuntimeError("as if something had broken after the first epoch")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["--lr", "0.5"], "run: the run there has lr 0.04, not 0.5: resume it with the same settings"),
        (["--net_width", "3"], "net_width 2, not 3"),
        (["--epochs", "6"], "epochs 2, not 6: when it is finished, dividemix resume run --extend 4 adds epochs"),
        (["--epochs", "6", "--seed", "3"], "epochs 2, not 6: resume it with the same settings"),
        (["--epochs", "1"], "epochs 2, not 1: resume it with the same settings"),
        (["--seed", "3"], "seed 1, not 3"),
        (["--noise", "symmetric:0.2"], "noise none, not symmetric:0.2"),
        (["--preset", "cifar10-sym-20"], "lr_drop_epoch 150, not 1"),  # of 150 in 300 epochs
        (["--preset", "cifar10-sym-20", "--lr_drop_epoch", "150"], "lambda_u 25.0, not 0.0"),
    ],
)
def test_a_run_of_another_configuration_is_not_resumed(
    capsys: pytest.CaptureFixture[str], changes: list[str], message: str
) -> None:
    succeed(*QUICK, "--out", "run")
    assert message in fail(capsys, ["train", *QUICK, "--out", "run", "--resume", *changes])


def test_a_damaged_checkpoint_is_not_resumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    succeed(*QUICK, "--out", "run")
    path = next((tmp_path / "run" / "checkpoints" / "last").glob("*.safetensors"))
    path.write_bytes(path.read_bytes()[:-10])
    for arguments in (["train", "--resume", "--out", "run"], ["evaluate", "run"]):
        assert "checkpoint is damaged" in fail(capsys, arguments)


def test_changed_data_is_not_resumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    succeed(*QUICK, "--out", "run")
    save_toy(tmp_path, y_train=toy_arrays()["y_train"][::-1].copy())
    assert "other data" in fail(capsys, ["train", "--resume", "--out", "run"])


def test_flags_of_a_resumed_run_mean_what_its_method_means() -> None:
    """Without --method, the text of a flag is read as a setting of the run's own method."""
    own = ["toy.npz", "--method", "joint_optim", "--net", "small_cnn", "--net_width", "2", "--batch_size", "8"]
    succeed(*own, "--epochs", "3", "--device", "cpu", "--out", "run", "--preset", "fashion", "--window", "5")
    succeed("--resume", "--out", "run", "--window", "5")


def test_a_run_on_vectors_has_the_name_of_its_method_and_is_found_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a file holds is known only after it is read: the name is that of the method that trains."""
    labels = np.arange(60) % 3
    np.savez(tmp_path / "points.npz", features=np.eye(3, 5, dtype=np.float32)[labels], labels=labels)
    succeed("points.npz")
    assert [path.name for path in Path("runs").iterdir()] == ["points-robust_vectors-seed1"]
    assert "runs/points-robust_vectors-seed1 has a run already" in fail(capsys, ["train", "points.npz"])
    capsys.readouterr()
    succeed("points.npz", "--resume")
    assert "already finished" in capsys.readouterr().out
