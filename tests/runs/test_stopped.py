"""Runs whose process dies, is killed or gets a signal: resumed, they end in the same bytes, times excepted."""

import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from injected import dying
from toys import FLAGS, finish, save_toy, settled, toy_job, trained, tree

from dividemix.cli import main
from dividemix.runs.directory import RunDirectory
from dividemix.runs.run import Run


@pytest.mark.slow
def test_a_process_that_dies_anywhere_in_an_epoch_resumes_to_the_same_bytes(tmp_path: Path) -> None:
    """Every file operation of the second of two epochs, summary and page included, is once the last one."""
    short = toy_job(tmp_path, epochs=2, method="cross_entropy")
    trained(tmp_path / "straight", short)
    expected = settled(tmp_path / "straight")
    trained(tmp_path / "half", short, num_epochs=1)
    for at in itertools.count():
        path = tmp_path / str(at)
        shutil.copytree(tmp_path / "half", path)
        run = Run.load(path)
        with dying(path, at) as fault:
            finish(run)
        finish(Run.load(path))
        assert settled(path) == expected, f"after dying at operation {at}"
        if not fault.happened:
            break
    assert at > 15


@pytest.mark.slow
def test_a_process_that_dies_while_creating_leaves_a_run_or_none(tmp_path: Path) -> None:
    for at in itertools.count():
        path = tmp_path / str(at) / "run"
        path.parent.mkdir()
        with dying(path.parent, at) as fault:
            Run.create(path, toy_job(tmp_path, method="cross_entropy"))
        run = Run.load(path) if path.exists() else Run.create(path, toy_job(tmp_path, method="cross_entropy"))
        assert run.state.epoch == 0
        assert [file.name for file in path.parent.iterdir()] == ["run"]
        if not fault.happened:
            break
    assert at > 15


# Real processes: the command line, stopped from outside.

ENTRY = "from dividemix.cli import main; raise SystemExit(main())"

# Imports everything once, then does each command, a line of JSON, in a process of its own.
NURSERY = """
import json, os, sys
import torch._dynamo, dividemix.display
from dividemix.api import train
from dividemix.cli import main
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        os._exit(main(json.loads(line)))
    print("born", child)
    print("ended", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def command(data: Path, out: Path, *more: str) -> list[str]:
    """Arguments of a training long enough to be stopped many times."""
    noise = ["--noise", "symmetric:0.4", "--epochs", "16", "--num_views", "8"]
    return ["train", str(data), *FLAGS, *noise, "--out", str(out), *more]


def start(code: str, *arguments: str) -> subprocess.Popen[str]:
    """A Python process with one thread, whose lines come at once."""
    return subprocess.Popen(
        [sys.executable, "-u", "-c", code, *arguments],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def wait_for(process: subprocess.Popen[str], word: str) -> str:
    """The process's next line that begins with the word."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(word):
            return line
    return pytest.fail(f"the process ended before it said {word!r}")


@pytest.mark.slow
def test_killed_ten_times_a_run_ends_in_the_same_bytes(tmp_path: Path) -> None:
    data = save_toy(tmp_path)
    nursery = start(NURSERY)

    def begin(out: Path, *more: str) -> int:
        assert nursery.stdin is not None
        nursery.stdin.write(json.dumps(command(data, out, *more)) + "\n")
        nursery.stdin.flush()
        return int(wait_for(nursery, "born").split()[1])

    def saved() -> int:
        index = tmp_path / "killed" / "checkpoints" / "last" / "checkpoint.json"
        return json.loads(index.read_text())["facts"]["epoch"] if index.is_file() else 0

    begin(tmp_path / "straight")
    assert wait_for(nursery, "ended").split()[1] == "0"
    seconds = min(row["seconds"] for row in RunDirectory(tmp_path / "straight").read_rows())
    moments = random.Random(0)
    epochs = []
    for gets_on in 5 * [False, True]:
        child, stood, end = begin(tmp_path / "killed", "--resume"), saved(), time.monotonic() + 100
        wait_for(nursery, "robust on")
        while gets_on and saved() == stood:
            assert time.monotonic() < end, "no epoch was saved"
            time.sleep(0.005)
        time.sleep(moments.uniform(0, seconds))
        os.kill(child, signal.SIGKILL)
        assert wait_for(nursery, "ended").split()[1] == str(-signal.SIGKILL)
        epochs.append(saved())
    nursery.communicate()
    assert epochs == sorted(epochs)
    assert 5 <= epochs[-1] < 16
    assert main(command(data, tmp_path / "killed", "--resume")) == 0
    assert settled(tmp_path / "killed") == settled(tmp_path / "straight")


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_a_run_that_says_how_to_resume_it(tmp_path: Path, number: signal.Signals, code: int) -> None:
    data = save_toy(tmp_path)
    assert main(command(data, tmp_path / "straight")) == 0
    process = start(ENTRY, *command(data, tmp_path / "stopped"))
    wait_for(process, "epoch  1/16")
    process.send_signal(number)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == code
    assert f"stopped by {number.name}" in said
    assert "Traceback" not in said
    assert not [path for path in tree(tmp_path) if path.endswith((".tmp", ".partial"))]
    advice = said[said.index("Continue with: dividemix ") :].split()[3:]
    assert advice[0] == "resume"
    assert main(advice) == 0
    assert settled(tmp_path / "stopped") == settled(tmp_path / "straight")
