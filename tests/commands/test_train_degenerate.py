"""Data and settings at the edge of what can be trained: a warning or an error, and no weight that is not finite."""

from pathlib import Path

import numpy as np
import pytest
from toys import NUM_TRAIN, save_toy, toy_arrays
from workshop import QUICK, WITHOUT_WARMUP, fail, flags_of, succeed

from dividemix.cli import main
from dividemix.engine.checkpoint import load_checkpoint

pytestmark = pytest.mark.usefixtures("workshop")


def finite(out: Path) -> bool:
    """Whether every floating-point tensor of both checkpoints is finite."""
    tensors = [
        tensor
        for name in ("last", "best")
        for tensor in load_checkpoint(out / "checkpoints" / name)[0].values()
        if tensor.is_floating_point()
    ]
    return all(tensor.isfinite().all() for tensor in tensors)


def test_all_losses_equal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A net that knows nothing and a rate that teaches nothing: each loss is log C to the last bit."""
    (tmp_path / "flat_nets.py").write_text(
        "from torch import nn\n"
        "def flat(num_classes):\n"
        "    head = nn.Linear(64, num_classes)\n"
        "    nn.init.zeros_(head.weight), nn.init.zeros_(head.bias)\n"
        "    return nn.Sequential(nn.Flatten(), head)\n"
    )
    succeed(*QUICK, "--net", "flat_nets:flat", "--lr", "1e-30", "--out", "run")
    assert "dividemix: warning: all losses are equal" in capsys.readouterr().err
    assert finite(tmp_path / "run")


OVERFLOW: dict[str, dict[str, float]] = {
    "joint_optim": {"correct_from": 0, "prior_weight": 0, "entropy_weight": 0},
    "co_teaching_plus": {"co_teaching_share": 1e-9, "ramp_share": 1e-9},
}


@pytest.mark.parametrize("method", OVERFLOW)
def test_predictions_that_overflow_though_no_weight_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], method: str
) -> None:
    """The laboratory found it: nan in label_issues.csv, which was then called damaged; and a traceback."""
    settings = ["--method", method, *flags_of(OVERFLOW[method]), "--lr", "1000"]
    assert main(["train", *WITHOUT_WARMUP, *settings, "--out", "run"]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert said == "dividemix: error: training diverged: the networks' predictions are not finite; try a smaller --lr"
    assert finite(tmp_path / "run")
    assert not (tmp_path / "run" / "label_issues.csv").exists()


@pytest.mark.parametrize("division", ["global", "per_class"])
def test_all_images_equal(tmp_path: Path, capsys: pytest.CaptureFixture[str], division: str) -> None:
    save_toy(tmp_path, x_train=np.full((NUM_TRAIN, 8, 8), 7, np.uint8), x_test=np.full((12, 8, 8), 7, np.uint8))
    succeed(*QUICK, "--division", division, "--crop_padding", "0", "--out", "run")
    if division == "per_class":
        assert (
            "dividemix: warning: all losses are equal or nearly so, within each class: no label differs"
            in capsys.readouterr().err
        )
    assert finite(tmp_path / "run")


def test_no_sample_reaches_the_threshold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    succeed(*QUICK, "--cutout", "0", "--clean_threshold", "1", "--out", "run")
    assert "dividemix: warning: no sample reaches a clean probability of 1" in capsys.readouterr().err
    assert finite(tmp_path / "run")


def test_every_sample_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    succeed(*QUICK, "--method", "dividemix", "--clean_threshold", "0", "--out", "run")
    assert "dividemix: warning: every sample passes for clean" in capsys.readouterr().err
    assert finite(tmp_path / "run")


def test_a_batch_larger_than_the_data(tmp_path: Path) -> None:
    succeed(*QUICK, "--batch_size", "100", "--out", "run")
    assert finite(tmp_path / "run")


@pytest.mark.parametrize("division", ["global", "per_class"])
def test_a_class_with_one_sample(tmp_path: Path, division: str) -> None:
    y_train = np.where(np.arange(NUM_TRAIN) == 5, 3, np.arange(NUM_TRAIN) % 3)
    save_toy(tmp_path, y_train=y_train)
    succeed(*QUICK, "--division", division, "--out", "run")
    assert finite(tmp_path / "run")


@pytest.mark.parametrize("batch_size", ["1", "8"])
def test_two_samples(tmp_path: Path, batch_size: str) -> None:
    arrays = toy_arrays()
    save_toy(tmp_path, x_train=arrays["x_train"][:2], y_train=np.array([0, 1]), y_test=np.arange(12) % 2)
    succeed(*QUICK, "--batch_size", batch_size, "--out", "run")
    assert finite(tmp_path / "run")


def test_batches_of_a_single_row(capsys: pytest.CaptureFixture[str]) -> None:
    """BatchNorm cannot train on one image."""
    one = ["--batch_size", "1", "--num_views", "1", "--clean_threshold", "0"]
    line = fail(capsys, ["train", *QUICK, *one, "--out", "run"])
    assert "--batch_size 1 with --num_views 1 gives BatchNorm a single image" in line


def test_a_rate_that_leaves_the_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", *QUICK, "--lr", "1e29", "--out", "run"]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("dividemix: error: ")
    assert "try a smaller --lr" in error
    tensors, _ = load_checkpoint(tmp_path / "run" / "checkpoints" / "last")
    assert all(tensor.isfinite().all() for tensor in tensors.values() if tensor.is_floating_point())
