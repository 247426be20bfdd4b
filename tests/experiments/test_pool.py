"""Runs in processes: made-up programs for what is asked of them and read from them, real trainings (slow) for the rest.

The oracle of a reproduction that was stopped and resumed is one that was never stopped.
"""

import functools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import toy_plan as toy
from official_trees import make_webvision
from toys import epoch_row, settled

from dividemix.experiments import pool
from dividemix.experiments.finished import is_finished, machines_of
from dividemix.experiments.followed import Event
from dividemix.experiments.plans import PlannedRun
from dividemix.experiments.pool import train_all
from dividemix.nets.small_cnn import SmallCNN
from dividemix.runs.run import Run

ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")


@pytest.mark.parametrize(("limit", "expected"), [(None, 8), ("3", 3), ("16", 8), ("0", 8), ("many", 8)])
def test_threads_are_a_share_of_the_cores_and_no_more_than_the_user_allows(
    limit: str | None, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "num_cores", lambda: 17)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if limit is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", limit)
    assert pool.num_threads_each(2) == expected


# Made-up programs in the place of Python: `out` is the run directory, `metrics` its metrics.jsonl.

Program = Callable[[str], None]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Lets every process run this code instead."""

    def install(code: str) -> None:
        path = tmp_path / "program"
        path.write_text(
            f"#!{sys.executable}\nimport json, os, signal, sys, time\nfrom pathlib import Path\n"
            "out = Path(sys.argv[-1].removeprefix('--out='))\nout.mkdir(exist_ok=True)\n"
            f"metrics = out / 'metrics.jsonl'\n"
            f"def row(epoch): return json.dumps({epoch_row(0)!r} | {{'epoch': epoch}})\n{code}\n"
        )
        path.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(path))

    return install


def train(*runs: PlannedRun, folder: Path, num_workers: int = 1) -> list[Event]:
    return list(train_all(runs, folder, num_workers=num_workers, num_threads=3))


def test_a_run_is_trained_by_the_command_line_with_all_its_settings(
    tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # the log is no terminal
    program("(out / 'asked').write_text(json.dumps([sys.argv[1:], dict(os.environ)]))")
    run = toy.toy_run("only")
    assert [event.kind for event in train(run, folder=tmp_path)] == ["began", "ended"]
    words, environment = json.loads((tmp_path / "only" / "asked").read_text())
    out = f"--out={tmp_path / 'only'}"
    assert words == ["-P", "-m", "dividemix", "train", *run.job.flags(), "--resume", out]
    assert (environment["OMP_NUM_THREADS"], environment["OMP_WAIT_POLICY"]) == ("3", "PASSIVE")
    assert "FORCE_COLOR" not in environment


def test_an_epoch_counts_once_its_line_is_whole_and_counts_once(tmp_path: Path, program: Program) -> None:
    program("""
with metrics.open("a") as file:
    for text in (row(2) + "\\n" + row(3)[:5], row(3)[5:] + "\\n", row(4)[:-1]):
        file.write(text)
        file.flush()
        time.sleep(0.3)
""")
    (tmp_path / "only").mkdir()
    (tmp_path / "only" / "metrics.jsonl").write_text(json.dumps(epoch_row(1)) + "\n")  # of before
    events = train(toy.toy_run("only"), folder=tmp_path)
    assert [event.row for event in events if event.row] == [epoch_row(2), epoch_row(3)]
    assert events[-1].error is None


def test_an_epoch_that_is_trained_again_does_no_harm(tmp_path: Path, program: Program) -> None:
    """Its line may have another length: its process died before the checkpoint."""
    program("""
metrics.write_text(row(1) + "\\n")
time.sleep(0.3)
metrics.write_text("".join(text + "\\n" for text in (row(1), row(2).replace('0.0', '1.25'), row(3))))
""")
    (tmp_path / "only").mkdir()
    (tmp_path / "only" / "metrics.jsonl").write_text("".join(json.dumps(epoch_row(k)) + "\n" for k in (1, 2)))
    assert [event.row for event in train(toy.toy_run("only"), folder=tmp_path) if event.row] == [epoch_row(3)]


def test_only_what_a_person_must_read_is_relayed(tmp_path: Path, program: Program) -> None:
    program("""
print("preset fashion: the embedded set", flush=True)
print("warning: skipped 2 files or rows, 3 images are used (list: a.csv). The first: a.jpg: empty", flush=True)
print("w.pth: 5 tensors matched", flush=True)
print("onednn_verbose,info", flush=True)
os.write(2, b"dividemix: warning: no label is kept \\xff\\nepoch 1/2  train  test 50 %\\n")
""")
    events = train(toy.toy_run("only", weights="w.pth"), folder=tmp_path)
    assert [event.line for event in events if event.kind == "printed"] == [
        "warning: skipped 2 files or rows, 3 images are used (list: a.csv). The first: a.jpg: empty",
        "w.pth: 5 tensors matched",
        "warning: no label is kept \ufffd",
    ]
    assert (tmp_path / "only.log").read_bytes().startswith(b"preset fashion")
    assert (tmp_path / "only.log").read_bytes().endswith(b"test 50 %\n")


def test_a_link_in_the_place_of_the_log_is_not_followed(tmp_path: Path, program: Program) -> None:
    program("print('printed', flush=True)")
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "only.log").symlink_to(tmp_path / "victim")
    train(toy.toy_run("only"), folder=tmp_path)
    assert (tmp_path / "victim").read_text() == "precious"
    assert (tmp_path / "only.log").read_text() == "printed\n"


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("sys.exit(3)", "ended with exit code 3"),
        ("sys.exit('dividemix: error: no such net')", "ended with exit code 1: no such net"),
        ("os.write(1, b'epoch 1\\n\\nepoch 2'); os.kill(os.getpid(), 9)", "ended by signal 9: epoch 2"),
        ("1 / 0", "ended with exit code 1: ZeroDivisionError: division by zero"),
        ("sys.exit('out of memory')", "ended with exit code 1: out of memory: run fewer --jobs at a time"),
        ("metrics.write_text('{torn\\n')", None),
        ("metrics.write_text('[]\\n')", None),
    ],
)
def test_a_failure_is_the_exit_code_or_signal_and_the_last_line(
    code: str, error: str | None, tmp_path: Path, program: Program
) -> None:
    program(code)
    events = train(toy.toy_run("only"), folder=tmp_path)
    assert [event.kind for event in events] == ["began", "ended"]
    assert events[-1].error == error


def test_closed_in_the_middle_it_waits_until_all_is_saved(tmp_path: Path, program: Program) -> None:
    program("""
def save(*_):
    time.sleep(0.5)
    (out / "saved").touch()
    sys.exit(143)
signal.signal(signal.SIGTERM, save)
metrics.write_text(row(1) + "\\n")
time.sleep(100)
""")
    num_threads = threading.active_count()
    runs = [toy.toy_run(name) for name in ("a", "b", "c")]
    events = train_all(runs, tmp_path, num_workers=2, num_threads=1)
    seen: set[str] = set()
    while len(seen) < 2:
        event = next(events)
        seen |= {event.run.name} if event.row else set()
    events.close()
    assert sorted(path.parent.name for path in tmp_path.glob("*/saved")) == ["a", "b"]
    assert not (tmp_path / "c").exists()
    assert threading.active_count() == num_threads


@ON_LINUX
def test_a_process_whose_parent_is_gone_before_it_starts_ends_at_once(tmp_path: Path) -> None:
    """The oracle: a parent that lives."""
    for parent, code in ((os.getpid(), 0), (os.getppid(), 1)):
        command = [sys.executable, "-c", ""]
        assert (
            subprocess.run(command, preexec_fn=functools.partial(pool._end_with, parent), check=False).returncode
            == code
        )


# Real trainings


@pytest.mark.slow
def test_runs_train_side_by_side_and_a_failure_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONEDNN_VERBOSE", "1")  # a library that prints
    good, other = toy.toy_run("good"), toy.toy_run("other", "cross_entropy")
    bad = toy.toy_run("bad", net="no_such_net")
    events = list(train_all([bad, good, other], tmp_path, num_workers=2, num_threads=1))
    ended = {event.run.name: event.error for event in events if event.kind == "ended"}
    assert ended["good"] is None
    assert ended["other"] is None
    assert (ended["bad"] or "").startswith("ended with exit code 2: unknown net 'no_such_net'")
    assert [event.row["epoch"] for event in events if event.row and event.run == good] == [1, 2]
    assert is_finished(good, tmp_path)
    assert is_finished(other, tmp_path)
    assert not (tmp_path / "bad").exists()
    [machine] = machines_of(good, tmp_path)
    assert machine.endswith(" cores, Linux") or sys.platform != "linux"
    assert ", 1 of " in machine


@pytest.mark.slow
def test_what_a_run_says_is_relayed(tmp_path: Path) -> None:
    """What became of the weights, and a warning: with this threshold no label is kept."""
    net = SmallCNN(num_classes=10, in_channels=1, width=2)
    torch.save(net.state_dict(), tmp_path / "weights.pth")
    run = toy.toy_run("only", weights=str(tmp_path / "weights.pth"), clean_threshold=1.0)
    said = [event.line or "" for event in train_all([run], tmp_path, num_workers=1, num_threads=1) if event.line]
    assert said[0] == f"{tmp_path / 'weights.pth'}: {len(net.state_dict())} tensors matched"
    assert said[1:]
    assert all(line.startswith("warning: ") for line in said[1:])
    log = (tmp_path / "only.log").read_text().splitlines()
    assert all(line in log or f"dividemix: {line}" in log for line in said)


@pytest.mark.slow
def test_files_that_are_skipped_are_relayed(tmp_path: Path) -> None:
    make_webvision(tmp_path / "data")
    (tmp_path / "data" / "val_images_256" / "val000003.jpg").unlink()
    images = {"image_size": 16, "crop_size": 12, "crop_padding": 0, "limit_train": None, "noise": "none"}
    run = toy.toy_run("only", "cross_entropy", data="webvision", root=str(tmp_path / "data"), **images)
    said = [event.line for event in train_all([run], tmp_path, num_workers=1, num_threads=1) if event.line]
    assert said[0].startswith("warning: skipped 1 file or row, ")


@pytest.mark.slow
@ON_LINUX
def test_a_run_that_is_killed_is_reported_with_its_signal_even_without_its_log(tmp_path: Path) -> None:
    """Whoever waits for its end would wait for ever."""
    events = train_all([toy.toy_run("only", epochs=2000)], tmp_path, num_workers=1, num_threads=1)
    assert any(event.kind == "epoch" for event in events)
    [child] = children_of(os.getpid())
    (tmp_path / "only.log").unlink()
    os.kill(child, signal.SIGKILL)
    assert (list(events)[-1].error or "").startswith("ended by signal 9: epoch ")


@pytest.mark.slow
def test_python_files_in_the_working_directory_are_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row 3: `reproduce` imported them. The oracle: Python without -P does."""
    planted = "from pathlib import Path; Path('imported').touch(); raise SystemExit('planted')"
    for name in ("numpy.py", "torch.py", "dividemix.py", "yaml.py"):
        (tmp_path / name).write_text(planted)
    monkeypatch.chdir(tmp_path)
    events = list(train_all([toy.toy_run("only", "cross_entropy")], Path("runs"), num_workers=1, num_threads=1))
    assert events[-1].error is None
    assert not (tmp_path / "imported").exists()
    assert subprocess.run([sys.executable, "-m", "dividemix", "--version"], capture_output=True, check=False).returncode
    assert (tmp_path / "imported").exists()


def wait_for(condition: Callable[[], Any], seconds: float = 200) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def num_epochs(run: Path) -> int:
    metrics = run / "metrics.jsonl"
    return len(metrics.read_text().splitlines()) if metrics.is_file() else 0


def start(out: Path, epochs: int) -> "subprocess.Popen[str]":
    script = [sys.executable, str(Path(toy.__file__)), str(out), str(epochs)]
    return subprocess.Popen(script, stdout=subprocess.PIPE, text=True, start_new_session=True)


def reproduced(out: Path, epochs: int) -> str:
    """What a reproduction that nobody stops prints."""
    with start(out, epochs) as process:
        said, _ = process.communicate()
    assert process.returncode == 0, said
    return said


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_stopped_in_the_middle_and_started_again_it_finishes_without_repeating(number: int, tmp_path: Path) -> None:
    """SIGKILL leaves no time for anything; SIGTERM, and SIGINT to all processes, end it once all is saved."""
    epochs = 30
    out, runs = tmp_path / "out", tmp_path / "out" / "runs"
    with start(out, epochs) as process:
        wait_for(lambda: (runs / "first" / "report.html").is_file() and num_epochs(runs / "second") >= 3)
        children = children_of(process.pid)
        if number == signal.SIGINT:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        said, _ = process.communicate()
    assert process.returncode == (-number if number == signal.SIGKILL else 128 + number)
    assert (f"stopped by {signal.Signals(number).name}: 1 of 2 runs finished" in said) == (number != signal.SIGKILL)
    wait_for(lambda: not any(map(is_running, children)), seconds=30 if number == signal.SIGKILL else 0.1)
    stood = num_epochs(runs / "second")
    assert 3 <= stood < epochs
    assert not (out / "table2-mini-fashion.md").exists()
    first = {path: path.stat().st_mtime_ns for path in (runs / "first").rglob("*")}
    seconds = [json.loads(line)["seconds"] for line in (runs / "second" / "metrics.jsonl").read_text().splitlines()]

    said = reproduced(out, epochs)
    assert "2 runs, 1 finished" in said
    assert "second: begins" in said
    assert "first: begins" not in said
    assert {path: path.stat().st_mtime_ns for path in (runs / "first").rglob("*")} == first
    rows = [json.loads(line) for line in (runs / "second" / "metrics.jsonl").read_text().splitlines()]
    assert len(rows) == epochs
    kept = [row["seconds"] for row in rows][: stood - 1]  # a row whose checkpoint was not written is measured again
    assert kept == seconds[: stood - 1]
    straight = Run.create(tmp_path / "straight", toy.toy_plan(epochs).runs[1].job)
    assert len(list(straight.epochs())) == epochs
    same_files(runs / "second", tmp_path / "straight", without=("report.html",))


@pytest.mark.slow
@ON_LINUX
def test_killed_with_its_parent_killed_alone_and_resumed_it_gives_the_files_of_an_undisturbed_reproduction(
    tmp_path: Path,
) -> None:
    epochs = 30
    out, runs = tmp_path / "out", tmp_path / "out" / "runs"
    with start(out, epochs) as process:
        wait_for(lambda: num_epochs(runs / "second") >= 2)
        process.kill()
        process.communicate()
    wait_for(lambda: (runs / "second.log").read_text().count("stopped by SIGTERM") == 1, seconds=30)
    with start(out, epochs) as process:
        wait_for(lambda: num_epochs(runs / "second") >= 12)
        for child in children_of(process.pid):
            os.kill(child, signal.SIGKILL)
        said, _ = process.communicate()
    assert process.returncode == 1
    assert "failed: second: ended by signal 9: " in said
    assert "incomplete" in (out / "table2-mini-fashion.csv").read_text()  # the table is written
    reproduced(out, epochs)
    reproduced(tmp_path / "undisturbed", epochs)
    for name in ("table2-mini-fashion.md", "table2-mini-fashion.csv"):
        assert (out / name).read_bytes() == (tmp_path / "undisturbed" / name).read_bytes()
    for run in ("first", "second"):
        same_files(runs / run, tmp_path / "undisturbed" / "runs" / run)


def same_files(run: Path, expected: Path, without: tuple[str, ...] = ()) -> None:
    """Raise AssertionError unless both have the same files, apart from times and machines."""
    found, wanted = (
        {name: text for name, text in settled(path).items() if name not in without} for path in (run, expected)
    )
    assert found.keys() == wanted.keys()
    for name in wanted:
        assert found[name] == wanted[name], name


@pytest.mark.slow
@ON_LINUX
def test_the_runs_end_with_their_parent(tmp_path: Path) -> None:
    with start(tmp_path, 2000) as process:
        wait_for(lambda: num_epochs(tmp_path / "runs" / "second") >= 1)
        children = children_of(process.pid)
        assert children
        process.kill()
        process.communicate()
    wait_for(lambda: not any(map(is_running, children)), seconds=10)


def children_of(parent: int) -> list[int]:
    """The running processes that the process started."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            state, started_by = (path / "stat").read_text().rpartition(")")[2].split()[:2]
        except (OSError, ValueError):
            continue
        if int(started_by) == parent and state != "Z":
            found.append(int(path.name))
    return found


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
