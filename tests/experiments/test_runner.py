"""The runner with made-up trainings: what is trained, repeated, refused, written and returned."""

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import toy_plan as toy
from toys import epoch_row

from dividemix.errors import InputError
from dividemix.experiments import runner, training
from dividemix.experiments.finished import is_finished, machines_of, read_epochs
from dividemix.experiments.followed import Event
from dividemix.experiments.plans import PlannedRun, Source, make_plan
from dividemix.experiments.results import Measure
from dividemix.lock import exclusive
from dividemix.nets.resnet import ResNet50
from dividemix.planning.pace import Pace, PhasePace
from dividemix.runs.directory import RunDirectory

PACE = Pace({"train": PhasePace(0.01), "warmup": PhasePace(0.01), "mix": PhasePace(0.01, 0.01)}, 0.01, 100, 100)


def fake_run(run: PlannedRun, folder: Path) -> None:
    """What a finished run leaves, as far as a table reads it."""
    (folder / run.name).mkdir(parents=True)
    (folder / run.name / "config.yaml").write_text(run.job.to_yaml())
    rows = [epoch_row(k + 1, test_acc=50.0, seconds=1.0) for k in range(run.job.settings.epochs)]
    (folder / run.name / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name in ("summary.json", "report.html"):
        (folder / run.name / name).write_text("{}")


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replace the training by a fake; the names of the runs that it was given. A run named bad fails."""
    names: list[str] = []

    def fake_training(runs: list[PlannedRun], folder: Path, **_: int) -> Iterator[Event]:
        for run in runs:
            names.append(run.name)
            yield Event("began", run)
            if "bad" not in run.name:
                fake_run(run, folder)
            yield Event("ended", run, error="it is bad" if "bad" in run.name else None)

    monkeypatch.setattr(training, "train_all", fake_training)
    monkeypatch.setattr(training, "measure_pace", lambda *_, **__: PACE)
    return names


def reproduce(plan: Any, out: Path, num_workers: int = 1) -> tuple[int, str]:
    text = io.StringIO()
    code = runner.reproduce(plan, out, num_workers=num_workers, command="the command", console=toy.quiet_console(text))
    return code, text.getvalue()


def test_a_plan_is_trained_once_and_written(tmp_path: Path, trained: list[str]) -> None:
    code, said = reproduce(toy.toy_plan(), tmp_path)
    assert (code, trained) == (0, ["first", "second"])
    assert "table2, mini scale: 2 runs, 0 finished" in said
    assert "in all about" in said.split("begins")[0]  # the cost is printed before anything is trained
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
        change: dict[str, Any] = {name: here}
        with pytest.raises(InputError, match=f"the run there has {name} {there}, not {here}: move it away"):
            is_finished(replace(run, job=replace(run.job, **change)), tmp_path)


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


def test_damaged_settings_are_reported_with_what_to_do(tmp_path: Path) -> None:
    run = toy.toy_run("first")
    fake_run(run, tmp_path)
    (tmp_path / "first" / "config.yaml").write_text("")
    with pytest.raises(InputError, match=r"first/config.yaml.*; move .*first away, and the run is trained again"):
        is_finished(run, tmp_path)


def test_skipped_files_are_named_in_the_table(tmp_path: Path, trained: list[str]) -> None:
    assert "Skipped" not in reproduce(toy.toy_plan(), tmp_path)[1]
    (tmp_path / "runs" / "second" / "skipped.csv").write_text("path,reason\na.jpg,no such file\nb.jpg,empty\n")
    line = "Skipped in fashion (skipped.csv of its runs): a.jpg: no such file, and 1 more."
    assert line in reproduce(toy.toy_plan(), tmp_path)[1]
    assert f"- {line}\n" in (tmp_path / "table2-mini-fashion.md").read_text()
    (tmp_path / "runs" / "second" / "skipped.csv").write_bytes(b"path,reason\n\xff,\n")
    with pytest.raises(InputError, match=r"second/skipped.csv is damaged \(.*; start again: move the run"):
        reproduce(toy.toy_plan(), tmp_path)


def test_a_second_reproduction_in_the_same_place_is_refused(tmp_path: Path, trained: list[str]) -> None:
    (tmp_path / "runs").mkdir()
    with exclusive(tmp_path / "runs"), pytest.raises(InputError, match="runs: another reproduction is running here"):
        reproduce(toy.toy_plan(), tmp_path)
    assert not trained


def test_a_failing_run_is_reported_and_the_others_continue(tmp_path: Path, trained: list[str]) -> None:
    plan = toy.toy_plan()
    bad = toy.toy_run("bad", seed=2)
    key = ("Cross-Entropy", toy.COLUMN, "best")
    broken = Source((bad, *plan.sources[key].runs), Measure("best", "test_acc"))
    plan = replace(plan, sources=dict(plan.sources) | {key: broken})
    code, said = reproduce(plan, tmp_path)
    assert code == 1
    assert trained == ["bad", "first", "second"]
    assert "failed: bad: it is bad" in said
    assert "incomplete" in (tmp_path / "table2-mini-fashion.csv").read_text()


def test_the_cost_counts_the_epochs_that_are_left(tmp_path: Path, trained: list[str]) -> None:
    """At 0.01 s for each of 100 images: 2 s an epoch with its test, 2 s at the end; half of 6 s is left."""
    first = toy.toy_plan().runs[0]
    fake_run(first, tmp_path / "runs")
    metrics = tmp_path / "runs" / "first" / "metrics.jsonl"
    metrics.write_text(metrics.read_text().splitlines(keepends=True)[0])  # of two epochs
    (tmp_path / "runs" / "first" / "summary.json").unlink()
    text = io.StringIO()
    training.announce_cost([first], tmp_path / "runs", num_workers=1, num_threads=1, console=toy.quiet_console(text))
    assert "about 3 s each" in text.getvalue()
    assert "in all about 3 s with 1 at a time on 1 core each" in text.getvalue()


@pytest.mark.parametrize(
    ("name", "scale", "message"),
    [
        ("table1", "paper", "^table1 at paper scale needs cifar10: give its folder as --root DIR$"),
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


def environment(**changes: Any) -> dict[str, Any]:
    """What env.json has of a machine."""
    machine = {"processor": "AMD EPYC", "num_cores": 8, "num_threads": 2, "device": "cpu", "platform": "Linux-6.1-x86"}
    return machine | {"command": ["dividemix"]} | changes


def test_a_run_that_is_resumed_elsewhere_names_both_machines(tmp_path: Path, trained: list[str]) -> None:
    assert reproduce(toy.toy_plan(), tmp_path)[0] == 0
    directory = RunDirectory(tmp_path / "runs" / "second")
    for name, command in (("one", "train"), ("other", "train"), ("one", "train --resume")):
        directory.add_environment(environment(processor=name, command=[command]))
    machines = ["one, 2 of 8 cores, Linux", "other, 2 of 8 cores, Linux"]
    assert machines_of(toy.toy_plan().runs[1], tmp_path / "runs") == machines
    assert "".join(f"Machine: {machine}\n" for machine in machines) in reproduce(toy.toy_plan(), tmp_path)[1]


@pytest.mark.parametrize("content", [None, b"", b"[]", b"3", b'{"resumed": [1]}', b'{"resumed": 1}', b"\xff"])
def test_a_damaged_record_of_the_machine_is_none(content: bytes | None, tmp_path: Path) -> None:
    """No figure depends on it."""
    (tmp_path / "first").mkdir()
    if content is not None:
        (tmp_path / "first" / "env.json").write_bytes(content)
    assert machines_of(toy.toy_run("first"), tmp_path) == []
    RunDirectory(tmp_path / "first").add_environment(environment())
    assert machines_of(toy.toy_run("first"), tmp_path) == ["AMD EPYC, 2 of 8 cores, Linux"]


def test_a_shared_accelerator_is_named_with_the_run_s_share_of_the_cores(tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    RunDirectory(tmp_path / "first").add_environment(environment(device="V100"))
    assert machines_of(toy.toy_run("first"), tmp_path) == ["V100, 2 of 8 cores, Linux"]


def test_a_figure_without_matplotlib_is_refused_before_anything_is_trained(
    tmp_path: Path, trained: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "matplotlib" else object())
    with pytest.raises(InputError, match=r"^figure2 needs matplotlib: .*pip install 'dividemix\[figures\]'$"):
        reproduce(make_plan("figure2", "mini"), tmp_path / "out")
    assert not trained
