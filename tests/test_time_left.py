"""How long a run takes, against sums worked out by hand; and that finding it out changes nothing."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from toys import finish, settled, toy_job, trained

from dividemix.cli import main
from dividemix.methods import METHODS
from dividemix.methods.method import Phase
from dividemix.planning.foreseen import foreseen
from dividemix.planning.pace import Pace, PhasePace, measure_on
from dividemix.runs.run import Run
from dividemix.time_left import Stopwatch, estimate, seconds_left, share_done, span, time_words

PHASES = (Phase("warmup", 3), Phase("mix", 9, cost=3.5))


@pytest.mark.parametrize(
    ("took", "left"),
    [
        ([2.0], 2 * 2.0 + 9 * 3.5 * 2.0),  # a mix epoch is taken for 3.5 of warm-up until one is measured
        ([2.0, 2.0, 2.0, 10.0], 8 * 10.0),
        ([2.0, 2.0, 2.0, 50.0, 10.0, 10.0, 10.0], 5 * 10.0),  # an old slow epoch is forgotten
        ([2.0, 2.0, 2.0, *[1.0] * 9], 0.0),
    ],
)
def test_an_epoch_takes_what_the_last_ones_of_its_phase_took(took: list[float], left: float) -> None:
    seconds = foreseen(PHASES, took, None)
    assert seconds is not None
    assert seconds[: len(took)] == took
    assert len(seconds) == 12
    assert sum(seconds[len(took) :]) == pytest.approx(left)


def test_before_the_first_epoch_there_is_the_estimate_or_nothing() -> None:
    assert foreseen(PHASES, [], None) is None
    seconds = foreseen(PHASES, [], 69.0)  # 3 + 9 * 3.5 = 34.5 units of 2 s
    assert seconds == pytest.approx([2.0] * 3 + [7.0] * 9)
    assert foreseen(PHASES, [4.0], 69.0) == pytest.approx([4.0] * 3 + [14.0] * 9)  # what is measured wins


def shown(*took: float, estimate: float | None = None) -> Any:
    """As much of a run as is looked at: two epochs of cost 1."""
    job = SimpleNamespace(method="cross_entropy", settings=SimpleNamespace(epochs=4))
    return SimpleNamespace(rows=[{"seconds": one} for one in took], job=job, estimate=estimate)


def test_time_inside_an_epoch_counts_and_a_slow_one_is_a_sign_for_those_to_come() -> None:
    assert seconds_left(shown(10.0, 10.0), 4.0) == pytest.approx(16.0)
    assert share_done(shown(10.0, 10.0), 4.0) == pytest.approx(24 / 40)
    assert seconds_left(shown(10.0, 10.0), 30.0) == pytest.approx(30.0)  # the last one takes 30 s, too
    assert share_done(shown(10.0, 10.0), 30.0) == pytest.approx(50 / 80)
    assert (seconds_left(shown()), share_done(shown())) == (None, None)
    assert share_done(shown(estimate=40.0), 10.0) == pytest.approx(0.25)
    assert seconds_left(shown(1.0, 1.0, 1.0, 1.0), 99.0) == 0.0


def test_a_stopwatch_begins_an_epoch_when_the_last_one_is_in_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    run = shown(1.0)
    watch = Stopwatch(run)
    now[0] = 105.0
    assert (watch.elapsed, watch.in_epoch) == (5.0, 5.0)
    run.rows.append({"seconds": 5.0})
    assert (watch.elapsed, watch.in_epoch) == (5.0, 0.0)
    now[0] = 107.0
    assert (watch.elapsed, watch.in_epoch) == (7.0, 2.0)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "1 s"),
        (40.4, "40 s"),
        (100, "2 min"),
        (3000, "50 min"),
        (5400, "1.5 h"),
        (90_000, "25 h"),
        (2.7e6, "31 days"),
    ],
)
def test_a_time_in_words(seconds: float, words: str) -> None:
    assert span(seconds) == words


def test_hours_are_a_warning_with_what_helps() -> None:
    labels = torch.zeros(3)
    run: Any = SimpleNamespace(material=SimpleNamespace(train=SimpleNamespace(labels=labels)))
    assert time_words(run, 90.0) == "this takes about 2 min here"
    words = time_words(run, 2.7e6)
    assert words.startswith("warning: this takes about 31 days here, on cpu; faster: a GPU, a smaller --net")
    assert "dividemix resume" in words


@pytest.mark.parametrize("method", ["dividemix", "robust", "abstention", "cross_entropy"])
def test_a_run_whose_time_was_estimated_has_the_same_bits(tmp_path: Path, method: str) -> None:
    job = toy_job(tmp_path, method=method)
    trained(tmp_path / "straight", job)
    run = Run.create(tmp_path / "run", job)
    seconds = estimate(run)
    assert seconds is not None
    assert 0 < seconds < 600
    finish(run)
    assert settled(tmp_path / "run") == settled(tmp_path / "straight")


@pytest.mark.parametrize(("each", "steps"), [(0.1, [1, 4]), (9.0, [1])])
def test_more_steps_are_measured_if_one_is_quick(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, each: float, steps: list[int]
) -> None:
    """In one step of a phase, what an epoch does only once counts as much as the step."""
    now, measured = [0.0], []

    def measure(job: Any, material: Any, *, num_steps: int, limit: float) -> Pace:
        now[0] += each * num_steps
        measured.append(num_steps)
        return Pace({"warmup": PhasePace(each / num_steps), "mix": PhasePace(each / num_steps)}, 0.0, 100, 0)

    run = Run.create(tmp_path / "run", toy_job(tmp_path))
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    monkeypatch.setattr("dividemix.planning.pace.measure_on", measure)
    assert estimate(run) == pytest.approx(100 * run.job.settings.epochs * each / steps[-1])
    assert measured == steps


@pytest.mark.slow
@pytest.mark.parametrize("method", [name for name, method in METHODS.items() if not method.needs_vectors])
def test_every_method_can_be_estimated(tmp_path: Path, method: str) -> None:
    run = Run.create(tmp_path / "run", toy_job(tmp_path, method=method, trusted=str(tmp_path / "toy.npz")))
    assert estimate(run) is not None


def test_what_is_too_slow_to_measure_follows_from_the_costs(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", toy_job(tmp_path))
    pace = measure_on(run.job, run.material, limit=0.0).phases
    assert pace["mix"].each == pytest.approx(3.5 * pace["warmup"].each)
    assert pace["mix"].kept == 0


def test_a_measurement_that_fails_and_code_of_the_user_cost_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("out of everything")

    run = Run.create(tmp_path / "run", toy_job(tmp_path))
    monkeypatch.setattr("dividemix.planning.pace.measure_on", broken)
    assert estimate(run) is None
    own: Any = SimpleNamespace(job=SimpleNamespace(method="mine:METHOD"))
    assert estimate(own) is None


@pytest.mark.usefixtures("workshop")
def test_the_estimate_is_printed_before_the_first_epoch_and_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = toy_job(tmp_path, epochs=2, warmup_epochs=1)
    assert main(["train", *job.flags(), "--out", "run"]) == 0
    said = capsys.readouterr().out
    assert 0 < said.index("this takes about ") < said.index("epoch 1/2")
    environment = json.loads(Path("run/env.json").read_text())
    assert 0 <= environment["estimated_seconds"] < 600  # rounded
    assert "resumed" not in environment
    assert main(["resume", "run"]) == 0
    assert "this takes about" not in capsys.readouterr().out  # it is finished
