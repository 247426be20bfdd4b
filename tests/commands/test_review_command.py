"""dividemix review as a process: what it prints, what it leaves, and how it ends."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from toys import toy_job, trained
from workshop import ENTRY, fail

from dividemix.relabel.corrections import read_corrections


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("toy")
    trained(folder / "run", toy_job(folder))
    return folder / "run"


@contextmanager
def reviewing(run: Path) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """The process, and its address."""
    command = [sys.executable, "-c", ENTRY, "review", str(run)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(3)]
            found = re.fullmatch(r"open (http://127\.0\.0\.1:[0-9]+/[\w-]{32}/)\n", lines[1])
            assert found, lines
            assert re.match(r".*run: \d+ of 40 labels flagged, \d+ decided\n", lines[0])
            yield process, found[1]
        finally:
            if process.poll() is None:
                process.kill()


def decide(url: str, index: int, action: str) -> None:
    body = json.dumps({"changes": [[index, action, ""]]}).encode()
    request = urllib.request.Request(f"{url}decisions", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        assert answer.status == 200


@pytest.mark.slow
def test_decisions_survive_ctrl_c_and_a_kill_and_are_continued(run: Path) -> None:
    file = run / "review" / "corrections.csv"
    with reviewing(run) as (process, url):
        decide(url, 3, "delete")
        os.kill(process.pid, signal.SIGINT)
        out, error = process.communicate(timeout=30)
        assert (process.returncode, error) == (0, "")
        assert out.endswith(f"{file}: 1 decision; to apply: dividemix relabel {run.parent / 'toy.npz'} --run {run}\n")
    with reviewing(run) as (process, url):
        decide(url, 5, "keep")
        second = subprocess.run(
            [sys.executable, "-c", ENTRY, "review", str(run)], capture_output=True, text=True, check=False
        )
        assert second.returncode == 2
        assert second.stderr.endswith("another process reviews this run: use its address, or stop it\n")
        process.kill()
        process.wait()
    assert [(one.index, one.action) for one in read_corrections(file)] == [(3, "delete"), (5, "keep")]
    with reviewing(run) as (_, url), urllib.request.urlopen(f"{url}decisions", timeout=20) as answer:
        assert [one[:2] for one in json.load(answer)["decisions"]] == [[3, "delete"], [5, "keep"]]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere"], "nowhere: not a run directory"),
        (["."], "not a run directory"),
        (["RUN", "--port", "70000"], "--port is 70000: must be from 0 to 65535"),
        (["RUN", "--data", "gone/"], "gone/: no such file or folder"),
    ],
)
def test_mistakes_are_one_line(
    run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in fail(capsys, ["review", *(word.replace("RUN", str(run)) for word in words)])
