"""Runs that several processes train. The oracle is one process; nothing is lost when a process is killed."""

import json
import os
import signal
import socket
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
@pytest.mark.timeout(900)
def test_two_and_four_processes_train_the_run_of_one(tmp_path: Path) -> None:
    words = *_TRAIN, "--method=dividemix", "--warmup_epochs=1"
    for count in (1, 2, 4):
        process = _launch(*words, f"--out={tmp_path / str(count)}", num_processes=count)
        said, _ = process.communicate(timeout=600)
        assert process.returncode == 0, said
        assert said.count("epoch 3/3") == 1  # only the first process prints
        assert json.loads((tmp_path / str(count) / "env.json").read_text())["num_processes"] == count
        assert (tmp_path / str(count) / "report.html").is_file()
    for run in (tmp_path / "2", tmp_path / "4"):
        for one, several in zip(_rows(tmp_path / "1"), _rows(run), strict=True):
            assert several["losses"] == one["losses"]
            assert several["figures"] == one["figures"]
        assert (run / "label_issues.csv").read_bytes() == (tmp_path / "1" / "label_issues.csv").read_bytes()


@pytest.mark.slow
def test_a_killed_process_loses_nothing(tmp_path: Path) -> None:
    killed = tmp_path / "killed"
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


@pytest.mark.slow
def test_a_stopped_run_does_not_complain_of_the_others_end(tmp_path: Path) -> None:
    """The second ends while the first is being stopped. Oracle: one line, and the exit code of the signal."""
    run = tmp_path / "run"
    with socket.create_server(("localhost", 0)) as server:
        port = server.getsockname()[1]
    place = {"MASTER_ADDR": "localhost", "MASTER_PORT": str(port), "WORLD_SIZE": "2", "OMP_NUM_THREADS": "1"}
    first, second = (
        subprocess.Popen(
            [sys.executable, "-m", "dividemix", *_TRAIN, f"--out={run}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | place | {"RANK": str(i), "LOCAL_RANK": str(i)},
        )
        for i in range(2)
    )
    while not (run / "metrics.jsonl").is_file() or not _rows(run):
        assert first.poll() is None
        time.sleep(0.05)
    second.send_signal(signal.SIGSTOP)
    time.sleep(1)  # the first waits for it now, where no signal reaches it
    first.send_signal(signal.SIGTERM)
    second.kill()
    said, _ = first.communicate(timeout=120)
    second.communicate()
    assert first.returncode == 128 + signal.SIGTERM, said
    assert said.count("stopped by SIGTERM") == 1
    assert "another process" not in said


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
