"""The runner with real workers (slow) and without any: what is trained, repeated, gone on with, written, returned.

The oracle of a resumed reproduction is one that was never stopped.
"""

import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import toy_plan as toy
from official_trees import make_webvision
from toys import settled

from dividemix.engine.lock import exclusive
from dividemix.errors import InputError
from dividemix.experiments import figures, machine, pool, runner
from dividemix.experiments.finished import is_finished, read_epochs
from dividemix.experiments.machine import add_machine, machines_of
from dividemix.experiments.plans import PlannedRun, make_plan
from dividemix.experiments.pool import Event, train_all
from dividemix.nets.resnet import ResNet50
from dividemix.nets.small_cnn import SmallCNN
from dividemix.planning.pace import Pace
from dividemix.runs.run import Run


def fake_run(run: PlannedRun, folder: Path) -> None:
    """What a finished run leaves, as far as a table reads it."""
    (folder / run.name).mkdir(parents=True)
    (folder / run.name / "config.yaml").write_text(run.job.to_yaml())
    rows = [{"epoch": k + 1, "phase": "mix", "test_acc": 50.0, "seconds": 1.0} for k in range(run.job.config.epochs)]
    (folder / run.name / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / run.name / "summary.json").write_text("{}")


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replaces the workers by fakes; the names of the runs that they were given. A run named bad fails."""
    names: list[str] = []

    def fake_training(runs: list[PlannedRun], folder: Path, **_: int) -> Iterator[Event]:
        for run in runs:
            names.append(run.name)
            yield Event("began", run)
            if "bad" not in run.name:
                fake_run(run, folder)
            yield Event("ended", run, error="it is bad" if "bad" in run.name else None)

    monkeypatch.setattr(runner, "train_all", fake_training)
    monkeypatch.setattr(runner, "measure_pace", lambda *_, **__: Pace(0.01, 0.01, 0.01, 100, 100))
    return names


def reproduce(plan: Any, out: Path, num_workers: int = 1) -> tuple[int, str]:
    text = io.StringIO()
    code = runner.reproduce(plan, out, num_workers=num_workers, command="the command", console=toy.quiet_console(text))
    return code, text.getvalue()


def test_a_plan_is_trained_once_and_written(tmp_path: Path, trained: list[str]) -> None:
    code, said = reproduce(toy.toy_plan(), tmp_path)
    assert (code, trained) == (0, ["first", "second"])
    assert "table2, mini scale: 2 runs, 0 finished" in said
    assert "in all about" in said.split("begins")[0]  # the cost is told before anything is trained
    assert {path.name for path in tmp_path.iterdir()} == {"runs", "table2-mini-fashion.md", "table2-mini-fashion.csv"}
    assert "`the command`" in (tmp_path / "table2-mini-fashion.md").read_text()
    before = (tmp_path / "table2-mini-fashion.csv").read_bytes()
    code, said = reproduce(toy.toy_plan(), tmp_path)
    assert (code, len(trained)) == (0, 2)
    assert "2 runs, 2 finished" in said
    assert "measuring" not in said
    assert (tmp_path / "table2-mini-fashion.csv").read_bytes() == before


def test_only_what_is_not_finished_is_trained(tmp_path: Path, trained: list[str]) -> None:
    fake_run(toy.toy_plan().runs[0], tmp_path / "runs")
    assert reproduce(toy.toy_plan(), tmp_path)[0] == 0
    assert trained == ["second"]


def test_a_run_without_its_summary_is_not_finished(tmp_path: Path) -> None:
    run = toy.toy_plan().runs[0]
    assert not is_finished(run, tmp_path)
    fake_run(run, tmp_path)
    assert is_finished(run, tmp_path)
    (tmp_path / run.name / "summary.json").unlink()
    assert not is_finished(run, tmp_path)


def test_another_run_under_the_name_is_refused(tmp_path: Path) -> None:
    fake_run(toy.toy_run("first", lr=0.5), tmp_path)
    with pytest.raises(InputError, match=r"first: the run there has lr 0.5, not 0.02: move it away"):
        is_finished(toy.toy_run("first"), tmp_path)
    assert is_finished(toy.toy_run("first", lr=0.5, device="auto"), tmp_path)  # where it computes does not matter
    run = toy.toy_run("first", lr=0.5)
    for name, there, here in (("data", "fashion", "cifar10"), ("weights", None, "other.pth")):
        with pytest.raises(InputError, match=f"the run there has {name} {there}, not {here}: move it away"):
            is_finished(replace(run, job=replace(run.job, **{name: here})), tmp_path)


@pytest.mark.parametrize(("keep", "left"), [(lambda text: "", 0), (lambda text: text[: len(text) // 2 + 1], 1)])
@pytest.mark.parametrize("name", ["table2", "figure3"])
def test_a_finished_run_with_damaged_epochs_is_refused_before_anything_is_trained(
    name: str, keep: Callable[[str], str], left: int, tmp_path: Path, trained: list[str]
) -> None:
    """Figures over the epochs that are left would be wrong, and nobody would see it."""
    plan = replace(toy.toy_plan(), name=name)
    fake_run(plan.runs[1], tmp_path / "runs")
    metrics = tmp_path / "runs" / "second" / "metrics.jsonl"
    metrics.write_text(keep(metrics.read_text()))
    with pytest.raises(InputError, match=f"second: metrics.jsonl is damaged, {left} of 2 epochs can be read: move"):
        reproduce(plan, tmp_path)
    assert not trained


def test_a_line_that_is_no_json_is_damage_too(tmp_path: Path) -> None:
    run = toy.toy_run("first")
    fake_run(run, tmp_path)
    assert [row["epoch"] for row in read_epochs(run, tmp_path)] == [1, 2]
    (tmp_path / "first" / "metrics.jsonl").write_text("{torn\n{}\n")
    with pytest.raises(InputError, match="0 of 2 epochs can be read"):
        read_epochs(run, tmp_path)


def test_bytes_that_are_no_text_are_damage_too(tmp_path: Path) -> None:
    run = toy.toy_run("first")
    fake_run(run, tmp_path)
    (tmp_path / "first" / "metrics.jsonl").write_bytes(b"\xff\xfe\x00\n")
    with pytest.raises(InputError, match="0 of 2 epochs can be read"):
        read_epochs(run, tmp_path)


def test_damaged_settings_are_told_with_what_to_do(tmp_path: Path) -> None:
    run = toy.toy_run("first")
    fake_run(run, tmp_path)
    (tmp_path / "first" / "config.yaml").write_text("")
    with pytest.raises(InputError, match=r"first/config.yaml.*; move .*first away, and the run is trained again"):
        is_finished(run, tmp_path)


def test_what_was_left_out_of_the_data_is_told_in_the_table(tmp_path: Path, trained: list[str]) -> None:
    assert "Left out" not in reproduce(toy.toy_plan(), tmp_path)[1]
    (tmp_path / "runs" / "second" / "skipped.csv").write_text("path,reason\na.jpg,no such file\nb.jpg,empty\n")
    told = "Left out of fashion (skipped.csv of its runs): a.jpg: no such file, and 1 more."
    assert told in reproduce(toy.toy_plan(), tmp_path)[1]
    assert f"- {told}\n" in (tmp_path / "table2-mini-fashion.md").read_text()
    (tmp_path / "runs" / "second" / "skipped.csv").write_bytes(b"path,reason\n\xff,\n")
    with pytest.raises(InputError, match=r"second/skipped.csv is damaged \(.*; start again: move the run"):
        reproduce(toy.toy_plan(), tmp_path)


def test_a_second_reproduction_in_the_same_place_is_refused(tmp_path: Path, trained: list[str]) -> None:
    (tmp_path / "runs").mkdir()
    with exclusive(tmp_path / "runs"), pytest.raises(InputError, match="runs: another reproduction is at work here"):
        reproduce(toy.toy_plan(), tmp_path)
    assert not trained


@pytest.mark.parametrize(("limit", "expected"), [(None, 8), ("3", 3), ("16", 8), ("0", 8), ("many", 8)])
def test_threads_are_a_share_of_the_cores_and_no_more_than_the_user_allows(
    limit: str | None, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "num_cores", lambda: 17)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if limit is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", limit)
    assert machine.num_threads_each(2) == expected


def test_a_shared_accelerator_is_told() -> None:
    assert machine.machine_name("V100", 4, num_workers=1).startswith("V100, ")
    assert machine.machine_name("V100", 4, num_workers=3).startswith("V100, 3 runs at a time, ")


def test_a_failing_run_is_told_and_the_others_go_on(tmp_path: Path, trained: list[str]) -> None:
    plan = toy.toy_plan()
    bad = toy.toy_run("bad", seed=2)
    key = ("Cross-Entropy", toy.COLUMN, "best")
    broken = toy.Source((bad, *plan.sources[key].runs), toy.Measure("best", "test_acc"))
    plan = toy.Plan("table2", "mini", dict(plan.sources) | {key: broken})
    code, said = reproduce(plan, tmp_path)
    assert code == 1
    assert trained == ["bad", "first", "second"]
    assert "failed: bad: it is bad" in said
    assert "incomplete" in (tmp_path / "table2-mini-fashion.csv").read_text()


def test_the_cost_counts_the_epochs_that_are_left(tmp_path: Path, trained: list[str]) -> None:
    """Of 100 images, 100 tests an epoch, all at 0.01 s: two epochs of cross-entropy take 4 s, one of two takes 2."""
    first = toy.toy_plan().runs[0]
    fake_run(first, tmp_path / "runs")
    metrics = tmp_path / "runs" / "first" / "metrics.jsonl"
    metrics.write_text(metrics.read_text().splitlines(keepends=True)[0])  # of two epochs
    (tmp_path / "runs" / "first" / "summary.json").unlink()
    text = io.StringIO()
    runner.announce_cost([first], tmp_path / "runs", num_workers=1, num_threads=1, console=toy.quiet_console(text))
    assert "about 2 s each" in text.getvalue()
    assert "in all about 2 s with 1 at a time on 1 core each" in text.getvalue()


@pytest.mark.parametrize(
    ("name", "scale", "message"),
    [
        ("table1", "paper", "^table1 at paper scale needs cifar10: say where it lies with --root DIR$"),
        ("table3", "paper", "^table3.*clothing1m"),
        ("table4", "paper", "^table4.*webvision"),
    ],
)
def test_missing_data_is_refused_before_anything_happens(name: str, scale: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message) as error:
        reproduce(make_plan(name, scale), tmp_path / "out")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "out").exists()


def test_weights_that_cannot_be_read_are_refused_before_anything_happens(tmp_path: Path, trained: list[str]) -> None:
    plan = make_plan("table3", "paper", root=str(tmp_path), weights=str(tmp_path / "none.pth"))
    with pytest.raises(InputError, match=r"^cannot read weights .*none.pth: No such file"):
        reproduce(plan, tmp_path / "out")
    assert not trained
    assert not (tmp_path / "out").exists()


def test_weights_that_do_not_fit_are_refused_before_anything_happens(tmp_path: Path, trained: list[str]) -> None:
    """Not after a measurement of minutes: the names are ResNet-50's, but one shape is not."""
    state = ResNet50(num_classes=3).state_dict()
    torch.save(state | {"conv1.weight": torch.zeros(64, 1, 7, 7)}, tmp_path / "grey.pth")
    plan = make_plan("table3", "paper", root=str(tmp_path), weights=str(tmp_path / "grey.pth"))
    with pytest.raises(InputError, match=r"grey.pth do not fit the net ResNet50: the file has in another shape 1"):
        reproduce(plan, tmp_path / "out")
    assert not trained
    assert not (tmp_path / "out").exists()


def test_a_run_that_goes_on_elsewhere_names_both_machines(tmp_path: Path, trained: list[str]) -> None:
    assert reproduce(toy.toy_plan(), tmp_path)[0] == 0
    for name in ("one", "other", "one"):
        add_machine(tmp_path / "runs" / "second", name)
    assert machines_of(tmp_path / "runs" / "second") == ["one", "other"]
    assert "Machine: one\nMachine: other\n" in reproduce(toy.toy_plan(), tmp_path)[1]


def test_a_figure_without_matplotlib_is_refused_before_anything_is_trained(
    tmp_path: Path, trained: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures.importlib.util, "find_spec", lambda name: None if name == "matplotlib" else object())
    with pytest.raises(InputError, match=r"^figure2 needs matplotlib: .*pip install 'dividemix\[figures\]'$"):
        reproduce(make_plan("figure2", "mini"), tmp_path / "out")
    assert not trained


@pytest.mark.slow
def test_workers_train_side_by_side_and_a_failure_takes_no_other_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONEDNN_VERBOSE", "1")  # a library that prints, between the workers' answers
    good, other = toy.toy_run("good"), toy.toy_run("other", method="cross_entropy")
    bad = toy.toy_run("bad", net="no_such_net")
    events = list(train_all([bad, good, other], tmp_path, num_workers=2, num_threads=1))
    ended = {event.run.name: event.error for event in events if event.kind == "ended"}
    assert ended["good"] is None
    assert ended["other"] is None
    assert "unknown net 'no_such_net'" in (ended["bad"] or "")
    assert [event.row["epoch"] for event in events if event.row and event.run == good] == [1, 2]
    assert is_finished(good, tmp_path)
    assert is_finished(other, tmp_path)
    assert not (tmp_path / "bad").exists()
    assert (tmp_path / "good" / "machine.txt").read_text().endswith(" Linux\n") or sys.platform != "linux"


@pytest.mark.slow
def test_what_a_worker_says_is_passed_on(tmp_path: Path) -> None:
    """What became of the weights, and a warning: with this threshold no label is kept."""
    net = SmallCNN(num_classes=10, in_channels=1, width=2)
    torch.save(net.state_dict(), tmp_path / "weights.pth")
    run = toy.toy_run("only", weights=str(tmp_path / "weights.pth"), clean_threshold=1.0)
    said = [event.said or "" for event in train_all([run], tmp_path, num_workers=1, num_threads=1) if event.said]
    assert said[0] == f"weights: {tmp_path / 'weights.pth'}: {len(net.state_dict())} tensors matched"
    assert any(line.startswith("warning: ") for line in said[1:])
    assert (tmp_path / "only.log").read_text().splitlines() == said


@pytest.mark.slow
def test_files_that_are_left_out_are_told(tmp_path: Path) -> None:
    make_webvision(tmp_path / "data")
    (tmp_path / "data" / "val_images_256" / "val000003.jpg").unlink()
    images = {"image_size": 16, "crop_size": 12, "crop_padding": 0, "limit_train": None, "noise": "none"}
    run = toy.toy_run("only", data="webvision", root=str(tmp_path / "data"), method="cross_entropy", **images)
    said = [event.said for event in train_all([run], tmp_path, num_workers=1, num_threads=1) if event.said]
    assert said[0].startswith(f"left out 1 of the files, all listed in {tmp_path / 'only' / 'skipped.csv'}; ")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_a_worker_that_is_killed_is_told_even_without_its_log(tmp_path: Path) -> None:
    """Whoever waits for its end would wait for ever."""
    events = train_all([toy.toy_run("only", epochs=2000)], tmp_path, num_workers=1, num_threads=1)
    assert any(event.kind == "epoch" for event in events)
    [worker] = [path for path in Path("/proc").glob("[0-9]*") if parent_of(path) == os.getpid() and is_worker(path)]
    (tmp_path / "only.log").unlink()
    os.kill(int(worker.name), signal.SIGKILL)
    assert list(events)[-1].error == "ended by signal 9"


def test_an_answer_that_was_cut_short_is_none() -> None:
    process = SimpleNamespace(stdout=io.StringIO('{"said": "whole"}\n{"said": "to'))
    worker = SimpleNamespace(process=process, _told=None, _pipe=lambda pipe: pipe)
    assert list(pool._Worker.messages(worker)) == [{"said": "whole"}]  # type: ignore[arg-type]


@pytest.mark.slow
def test_closed_in_the_middle_it_waits_until_all_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However late a worker's end is noticed, nobody is left to look for a log that is gone."""
    died: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", died.append)
    error = pool._Worker.error.fget  # type: ignore[attr-defined]
    monkeypatch.setattr(pool._Worker, "error", property(lambda worker: time.sleep(0.5) or error(worker)))
    num_threads = threading.active_count()
    events = train_all([toy.toy_run("only")], tmp_path, num_workers=1, num_threads=1)
    assert next(events).kind == "began"
    events.close()
    assert threading.active_count() == num_threads
    assert died == []


def wait_for(condition: Callable[[], bool], seconds: float = 200) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def num_epochs(run: Path) -> int:
    metrics = run / "metrics.jsonl"
    return len(metrics.read_text().splitlines()) if metrics.is_file() else 0


def start(out: Path, epochs: int) -> "subprocess.Popen[str]":
    script = [sys.executable, str(Path(toy.__file__)), str(out), str(epochs)]
    return subprocess.Popen(script, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_stopped_in_the_middle_and_started_again_it_finishes_without_repeating(number: int, tmp_path: Path) -> None:
    """SIGKILL leaves no time for anything; SIGTERM is answered with 143 once all is saved."""
    epochs = 30
    out, runs = tmp_path / "out", tmp_path / "out" / "runs"
    list(Run.create(runs / "first", toy.toy_plan().runs[0].job).train())
    with start(out, epochs) as process:
        wait_for(lambda: num_epochs(runs / "second") >= 3)
        process.send_signal(number)
        said, _ = process.communicate()
    assert process.returncode == (-signal.SIGKILL if number == signal.SIGKILL else 143)
    assert ("stopped by SIGTERM: 1 of 2 runs finished" in said) == (number == signal.SIGTERM)
    stood = num_epochs(runs / "second")
    assert 3 <= stood < epochs
    assert not (out / "table2-mini-fashion.md").exists()
    first = {path: path.stat().st_mtime_ns for path in (runs / "first").rglob("*")}
    seconds = [json.loads(line)["seconds"] for line in (runs / "second" / "metrics.jsonl").read_text().splitlines()]

    with start(out, epochs) as process:
        said, _ = process.communicate()
    assert process.returncode == 0, said
    assert "2 runs, 1 finished" in said
    assert "second: begins" in said
    assert "first: begins" not in said
    assert {path: path.stat().st_mtime_ns for path in (runs / "first").rglob("*")} == first
    rows = [json.loads(line) for line in (runs / "second" / "metrics.jsonl").read_text().splitlines()]
    assert len(rows) == epochs
    kept = [row["seconds"] for row in rows][: stood - 1]  # a row whose checkpoint was not written is measured again
    assert kept == seconds[: stood - 1]
    assert (out / "table2-mini-fashion.md").is_file()

    straight = Run.create(tmp_path / "straight", toy.toy_plan(epochs).runs[1].job)
    assert len(list(straight.train())) == epochs
    stopped, expected = settled(runs / "second"), settled(tmp_path / "straight")
    for name in expected:
        if name.startswith(("metrics.jsonl", "checkpoints", "model")):
            assert stopped[name] == expected[name], name


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_a_worker_ends_with_its_parent(tmp_path: Path) -> None:
    with start(tmp_path, 2000) as process:
        wait_for(lambda: num_epochs(tmp_path / "runs" / "second") >= 1)
        workers = [int(path.name) for path in Path("/proc").glob("[0-9]*") if parent_of(path) == process.pid]
        assert workers
        process.kill()
        process.communicate()
    wait_for(lambda: not any(map(running, workers)), seconds=10)


def parent_of(process: Path) -> int:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return -1


def is_worker(process: Path) -> bool:
    try:
        return b"dividemix.experiments.worker" in (process / "cmdline").read_bytes()
    except OSError:
        return False


def running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
