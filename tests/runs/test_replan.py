"""Runs with a time limit, on a clock of the test: what is planned, recorded, resumed and repeated."""

import json
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import yaml
from toys import finish, save_toy, settled

from dividemix.cli import main
from dividemix.display import watch
from dividemix.engine.state import State
from dividemix.methods import loop
from dividemix.planning.budget import Budget
from dividemix.planning.choices import Choice
from dividemix.planning.job import Job
from dividemix.runs.replan import final_choices, results_seconds
from dividemix.runs.run import Run

SETTINGS = {"net": "small_cnn", "net_width": 2, "batch_size": 8, "crop_padding": 1, "device": "cpu", "lr": 0.05}
CHOSEN = [Choice(name, value, "a reason") for name, value in (("epochs", 12), ("warmup_epochs", 2))]


class Clock:
    """Seconds that pass while an epoch is trained, by its number; no others do."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *costs: float):
        self.now, self.costs = 1000.0, costs
        train_one = loop.train_one

        def timed(method: Any, state: State, *rest: Any) -> Any:
            self.now += self.costs[min(state.epoch, len(self.costs) - 1)]
            return train_one(method, state, *rest)

        monkeypatch.setattr("dividemix.runs.run.train_one", timed)
        for name in ("monotonic", "perf_counter"):
            monkeypatch.setattr(f"time.{name}", lambda: self.now)


def job_for(folder: Path, **changes: Any) -> Job:
    data = folder / "toy.npz" if (folder / "toy.npz").exists() else save_toy(folder)
    schedule = {"epochs": 12, "warmup_epochs": 2, "lr_schedule": "cosine", "method": "dividemix"}
    return Job.of({"data": str(data), "noise": "symmetric:0.4"} | SETTINGS | schedule | changes)


def limited(path: Path, seconds: float, clock: Clock, **changes: Any) -> Run:
    """A new run that was planned with 12 epochs and may take so many seconds."""
    job = job_for(path.parent, **changes)
    return Run.create(path, job, choices=CHOSEN, budget=Budget(seconds, clock.now))


@pytest.fixture
def busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A finished run of 100 s whose epochs take 4 s, and 14 s from the fifth on."""
    return finish(limited(tmp_path / "run", 100.0, Clock(monkeypatch, 4.0, 4.0, 14.0, 14.0, 14.0, 20.0)))


def test_the_run_ends_in_time_though_epochs_become_slower(busy: Run) -> None:
    assert 90 <= sum(row["seconds"] for row in busy.rows) + results_seconds(busy) <= 110
    assert busy.finished
    assert len(busy.rows) == busy.job.settings.epochs < 12
    stored = yaml.safe_load((busy.directory.path / "config.yaml").read_text())
    assert (stored["epochs"], stored["earlier_plans"]) == (len(busy.rows), busy.job.settings.earlier_plans)
    assert stored["earlier_plans"].startswith("1: epochs=12 warmup_epochs=2; ")
    summary = busy.directory.read_summary()
    choice = next(choice for choice in summary["choices"] if choice["name"] == "epochs")
    assert choice["value"] == len(busy.rows)
    assert choice["reason"].startswith("12 at first; planned again after ")


def test_its_config_repeats_it_to_the_bit_without_a_clock(busy: Run, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.undo()
    config = busy.directory.path / "config.yaml"
    again = tmp_path / "again"
    assert main(["train", "--config", str(config), "--out", str(again)]) == 0
    aside = ("choices.json", "summary.json", "report.html", "checkpoints/")  # they have the choices
    first, second = (
        {name: value for name, value in settled(path).items() if not name.startswith(aside)}
        for path in (busy.directory.path, again)
    )
    assert first == second
    weights = [(path / "checkpoints" / "last").glob("*.safetensors") for path in (busy.directory.path, again)]
    one, other = ([file.read_bytes() for file in sorted(files)] for files in weights)
    assert one == other


def test_a_run_that_is_stopped_follows_its_last_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After epoch 4 the plan has been changed. The resumed run equals one that has this plan from the beginning."""
    run = limited(tmp_path / "run", 100.0, Clock(monkeypatch, 4.0, 4.0, 14.0))
    with closing(run.epochs()) as epochs:
        for _ in islice(epochs, 4):
            pass
    planned = run.job.settings
    assert planned.earlier_plans
    monkeypatch.undo()
    resumed = Run.load(tmp_path / "run")
    assert (resumed.job.settings, resumed.budget) == (planned, None)
    finish(resumed)
    assert (resumed.job.settings, len(resumed.rows)) == (planned, planned.epochs)
    whole = Run.create(tmp_path / "whole", resumed.job, choices=CHOSEN)
    assert settled(finish(whole).directory.path) == settled(tmp_path / "run")


def test_a_plan_that_is_newer_than_the_checkpoint_is_followed(busy: Run, tmp_path: Path, monkeypatch: Any) -> None:
    """As after a death between config.yaml and the checkpoint: the checkpoint of no epoch, all plans of the run."""
    monkeypatch.undo()
    Run.create(tmp_path / "early", job_for(tmp_path), choices=CHOSEN)
    config = (busy.directory.path / "config.yaml").read_text()
    (tmp_path / "early" / "config.yaml").write_text(config)
    finish(Run.load(tmp_path / "early"))
    assert settled(tmp_path / "early") == settled(busy.directory.path)


def test_a_plan_that_the_checkpoint_does_not_know_is_refused(busy: Run, capsys: pytest.CaptureFixture[str]) -> None:
    config = busy.directory.path / "config.yaml"
    config.write_text(config.read_text().replace("1: epochs=12", "1: epochs=13"))
    assert main(["resume", str(busy.directory.path)]) == 2
    assert "the run there has earlier_plans" in capsys.readouterr().err


def test_a_quick_machine_gets_more_epochs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = finish(limited(tmp_path / "run", 60.0, Clock(monkeypatch, 2.0)))
    assert len(run.rows) > 20
    assert 54 <= 2.0 * len(run.rows) + results_seconds(run) <= 66


def test_the_page_is_written_within_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thumbnails of photographs may take as long as some epochs."""
    monkeypatch.setattr("dividemix.display.page_seconds", lambda run: 20.0)
    written: list[object] = []
    monkeypatch.setattr("dividemix.display.write_report", written.append)
    run = limited(tmp_path / "run", 60.0, Clock(monkeypatch, 2.0))
    watch(run)
    assert written == [run]
    assert 54 <= 2.0 * len(run.rows) + 20.0 <= 62


def test_choices_tell_the_last_plan_alone_where_it_differs() -> None:
    s = job_for_settings().replanned(3, {"epochs": 9, "warmup_epochs": 2})
    assert final_choices(CHOSEN, s) == [Choice("epochs", 9, "12 at first; planned again after 3"), CHOSEN[1]]
    assert final_choices(CHOSEN, job_for_settings()) == CHOSEN


def job_for_settings() -> Any:
    return Job.of({"data": "fashion", "epochs": 12, "warmup_epochs": 2, "method": "dividemix"}).settings


@pytest.mark.slow
def test_minutes_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """The real clock decides how often it is planned again; the record repeats the bits whatever it decided."""
    monkeypatch.chdir(tmp_path)
    save_toy(tmp_path)
    flags = [word for name, value in SETTINGS.items() for word in (f"--{name}", str(value))]
    assert main(["train", "toy.npz", *flags, "--minutes", "0.2", "--out", "run"]) == 0
    assert "epochs " in capsys.readouterr().out
    rows = [json.loads(line) for line in Path("run/metrics.jsonl").read_text().splitlines()]
    stored = yaml.safe_load(Path("run/config.yaml").read_text())
    assert len(rows) == stored["epochs"]
    assert main(["train", "--config", "run/config.yaml", "--out", "again"]) == 0
    assert Path("run/label_issues.csv").read_bytes() == Path("again/label_issues.csv").read_bytes()
