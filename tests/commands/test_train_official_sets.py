"""The settings of Tables 3 and 4 end to end: real networks, real loaders, small trees, stopped by Ctrl-C and resumed.

The oracle is the layout of a finished run: an epoch of each phase in metrics.jsonl, with every figure of the tables.
"""

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
import yaml
from official_trees import make_clothing1m, make_webvision

from dividemix import session
from dividemix.algorithm import dividemix
from dividemix.cli import main
from dividemix.experiments.plans import make_plan
from dividemix.judging.records import EpochRow

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),  # about a minute on a core of its own
    pytest.mark.filterwarnings("ignore::dividemix.errors.DegenerateDivisionWarning"),
]


def train_in_two_goes(command: list[str], out: Path, monkeypatch: pytest.MonkeyPatch) -> list[EpochRow]:
    """The epochs of a training that is stopped while it divides for the first time, and resumed."""

    def ctrl_c(*_: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(os, "fsync", lambda _: None)  # gigabytes of checkpoints: not to wait for the disk
    with monkeypatch.context() as stopped:
        stopped.setattr(dividemix, "co_divide", ctrl_c)
        stopped.setattr(session, "estimate", lambda _: None)  # which divides before the first epoch
        assert main(["train", *command, "--out", str(out)]) == 128 + signal.SIGINT
    assert len((out / "metrics.jsonl").read_text().splitlines()) == 1
    assert main(["train", *command, "--out", str(out), "--resume"]) == 0
    rows: list[EpochRow] = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert [(row["epoch"], row["phase"]) for row in rows] == [(1, "warmup"), (2, "mix")]
    assert json.loads((out / "summary.json").read_text())["kept_epoch"] == 2
    for name in ("label_issues.csv", "report.html", "model/model.safetensors"):
        assert (out / name).is_file()
    shutil.rmtree(out / "checkpoints")
    shutil.rmtree(out / "model")
    return rows


def test_clothing1m(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_clothing1m(tmp_path / "data")
    small = "--image_size 36 --crop_size 32 --balanced_batches 2 --batch_size 4 --epochs 2 --compile never --device cpu"
    command = ["clothing1m", "--root", str(tmp_path / "data"), "--preset", "clothing1m", *small.split()]
    rows = train_in_two_goes(command, tmp_path / "run", monkeypatch)
    settings = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    assert (settings["net"], settings["alpha"], settings["confidence_penalty"]) == ("resnet50", 0.5, True)
    plan = make_plan("table3", "paper")
    assert all(source.measure.of(rows) is not None for source in plan.sources.values() if source.measure)
    assert all(row["val_is_clean"] for row in rows)


def test_webvision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_webvision(tmp_path / "data", num_train=8, num_test=7, size=(90, 96))
    small = "--image_size 78 --crop_size 76 --batch_size 2 --epochs 2 --compile never --device cpu"
    command = ["webvision", "--root", str(tmp_path / "data"), *small.split()]  # its preset is taken without being named
    rows = train_in_two_goes(command, tmp_path / "run", monkeypatch)
    settings = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    assert (settings["net"], settings["lr"], settings["confidence_penalty"]) == ("inception_resnet_v2", 0.01, False)
    plan = make_plan("table4", "paper")
    assert {source.measure.key for source in plan.sources.values() if source.measure} == {
        *("test_acc", "test_top5", "other_tests.ilsvrc12.acc", "other_tests.ilsvrc12.top5"),
    }
    assert all(source.measure.of(rows) is not None for source in plan.sources.values() if source.measure)
