"""Runs that several processes train. The oracle is one process; nothing is lost when a process is killed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

_TRAIN = (
    *("train", "fashion", "--noise=symmetric:0.4", "--limit_train=200", "--epochs=3", "--method=cross_entropy"),
    *("--net=small_cnn", "--net_width=2", "--batch_size=16", "--lr=0.002", "--sync_batchnorm=true"),
)


def _launch(*words: str, num_processes: int, **settings: Any) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={num_processes}"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [*command, "-m", "dividemix", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        **settings,
    )


def _rows(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.slow
def test_two_processes_train_the_run_of_one_and_a_killed_one_loses_nothing(tmp_path: Path) -> None:
    alone, shared, killed = tmp_path / "alone", tmp_path / "shared", tmp_path / "killed"
    subprocess.run([sys.executable, "-m", "dividemix", *_TRAIN, f"--out={alone}"], check=True, capture_output=True)
    process = _launch(*_TRAIN, f"--out={shared}", num_processes=2)
    said, _ = process.communicate(timeout=240)
    assert process.returncode == 0, said
    assert said.count("epoch 3/3") == 1  # only the first process prints
    for one, two in zip(_rows(alone), _rows(shared), strict=True):
        for name, values in one["losses"].items():
            assert two["losses"][name] == pytest.approx(values, rel=1e-4, abs=1e-4), (one["epoch"], name)
    assert json.loads((shared / "env.json").read_text())["num_processes"] == 2
    assert (shared / "report.html").is_file()

    process = _launch(*_TRAIN, f"--out={killed}", num_processes=2)
    while not (killed / "metrics.jsonl").is_file() or not _rows(killed):
        assert process.poll() is None
        time.sleep(0.05)
    os.kill(_children(process.pid)[-1], signal.SIGKILL)
    said, _ = process.communicate(timeout=120)
    assert process.returncode != 0
    assert said.count("another process of this training has ended") + said.count("stopped by SIGTERM") == 1
    resumed = subprocess.run(
        [sys.executable, "-m", "dividemix", "resume", str(killed)], capture_output=True, text=True, check=False
    )
    assert resumed.returncode == 0, resumed.stderr
    assert len(_rows(killed)) == 3


def _children(pid: int) -> list[int]:
    """The processes that the launcher started, in order."""
    words = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return sorted(int(word) for word in words)


@pytest.mark.slow
def test_an_error_is_one_line_of_the_first_process(tmp_path: Path) -> None:
    process = _launch("train", str(tmp_path / "absent"), num_processes=2)
    said, _ = process.communicate(timeout=120)
    assert process.returncode != 0
    assert said.count("dividemix: error:") == 1
