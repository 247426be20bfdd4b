"""What is shown, against lines and times worked out by hand."""

import io
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from dividemix import display
from dividemix.engine.progress import Progress
from dividemix.planning.job import Job

WARMUP: Any = {"epoch": 1, "phase": "warmup", "seconds": 2.0, "test_acc": 12.345}
MIX: Any = {
    "epoch": 2,
    "phase": "mix",
    "seconds": 10.0,
    "test_acc": 50.0,
    "num_labeled": [30, 40],
    "num_divided": 50,
    "clean_auc": [0.9, 0.75],
}


def run(*rows: Any, method: str = "dividemix", epochs: int = 12, warmup_epochs: int = 3) -> Any:
    """As much of a run as the display looks at."""
    schedule = {"epochs": epochs} | ({"warmup_epochs": warmup_epochs} if method == "dividemix" else {})
    return SimpleNamespace(
        rows=list(rows),
        job=Job.of({"data": "toy.npz", "method": method, **schedule}),
        state=SimpleNamespace(epoch=len(rows), progress=Progress("net 1", 3, 8)),
        epochs=lambda: (row for row in rows),
        estimate=None,
        budget=None,
        keeps_files=True,
        directory=SimpleNamespace(path=Path("nowhere")),
        finished=False,
    )


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The runs whose page was written."""
    written: list[Any] = []
    monkeypatch.setattr(display, "write_report", written.append)
    return written


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0:00"), (59.4, "0:59"), (59.6, "1:00"), (3599.6, "1:00:00"), (7384, "2:03:04"), (6e7, "694 days")],
)
def test_clock(seconds: float, shown: str) -> None:
    assert display.clock(seconds) == shown


def test_an_epoch_in_one_line() -> None:
    line = display.epoch_line(run(WARMUP, MIX, warmup_epochs=1), MIX)
    assert line == (
        "epoch  2/12  mix     test 50.00 %  labels kept 30 and 40 of 50  clean AUC 0.900 0.750  10.0 s  left 1:40"
    )
    bare: Any = {"epoch": 1, "phase": "warmup", "seconds": 0.04, "test_acc": None, "losses": {}}
    assert display.epoch_line(run(bare), bare) == "epoch  1/12  warmup  0.0 s  left 0:01"


@pytest.mark.parametrize(
    ("measured", "words"),
    [
        ({"losses": {"loss": [1.0, 2.0]}}, "loss 1.500"),
        (
            {"losses": {"loss_x": [0.5, 0.75], "loss_u": [9.0, 9.0]}, "val_acc": 64.123},
            "agrees with 64.1 % of held-out labels",
        ),
        ({"losses": {"loss": [1.0]}, "val_acc": 64.0, "val_is_clean": True}, "validation 64.00 %"),
    ],
)
def test_without_test_images_the_line_has_the_held_out_accuracy_or_the_loss(measured: Any, words: str) -> None:
    row: Any = {"epoch": 1, "phase": "warmup", "seconds": 2.0, "test_acc": None, **measured}
    assert display.epoch_line(run(row), row) == f"epoch  1/12  warmup  {words}  2.0 s  left 1:07"


def test_elsewhere_than_on_a_terminal_plain_lines_are_shown(monkeypatch: pytest.MonkeyPatch, pages: list[Any]) -> None:
    written = io.StringIO()
    monkeypatch.setattr(display, "console", Console(file=written, highlight=False))
    watched = run(WARMUP)
    display.watch(watched)
    assert pages == [watched]
    assert written.getvalue() == display.epoch_line(run(WARMUP), WARMUP) + "\n"


def test_a_terminal_shows_the_epoch_and_one_bar_for_all(monkeypatch: pytest.MonkeyPatch, pages: list[Any]) -> None:
    written = io.StringIO()
    terminal = Console(file=written, force_terminal=True, width=120, highlight=False, color_system=None)
    monkeypatch.setattr(display, "console", terminal)
    watched = run(WARMUP)
    display.watch(watched)
    assert pages == [watched]
    shown = written.getvalue()
    assert display.epoch_line(run(WARMUP), WARMUP) in shown
    assert "epoch 2/12" in shown
    assert "net 1" in shown
    assert "net 1 3/8" in shown
    assert "3 %" in shown  # 2 s of 2 + 2 * 2 + 9 * 7: one bar for the whole run
    assert "1:07 left" in shown
    assert "writing report.html" in shown


def test_an_epoch_that_takes_longer_than_foreseen_is_not_called_done(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Console(file=io.StringIO(), force_terminal=True, width=120, highlight=False, color_system=None)
    monkeypatch.setattr(display, "share_done", lambda *_: 1.0)
    monkeypatch.setattr(display, "seconds_left", lambda *_: 0.0)
    with terminal.capture() as shown:
        terminal.print(display._Bar(run(WARMUP)))
    assert "99 %" in shown.get()
    assert "elapsed, nearly done" in shown.get()


@pytest.mark.parametrize("is_terminal", [False, True])
def test_a_line_is_broken_between_words_and_only_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool
) -> None:
    written = io.StringIO()
    console = Console(file=written, force_terminal=is_terminal, width=20, highlight=False, color_system=None)
    monkeypatch.setattr(display, "console", console)
    words = ["a", "run", "in", "a/folder/with-a-name/that-is-longer/than-the-terminal", "is", "saved"]
    display.say(" ".join(words))
    assert written.getvalue().split() == words
    assert (written.getvalue().count("\n") > 1) == is_terminal


def test_a_command_is_never_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is copied from the terminal: in two lines it would be two commands."""
    command = "dividemix resume runs/a-very-long-name-of-a-run"
    for width, lines in ((80, [f"stopped: {command}"]), (50, ["stopped:", command]), (20, ["stopped:", command])):
        out = io.StringIO()
        monkeypatch.setattr(display, "console", Console(file=out, force_terminal=True, width=width, no_color=True))
        display.say_command("stopped", command)
        assert out.getvalue().splitlines() == lines


def test_an_interrupt_closes_the_training_which_saves_what_is_left(pages: list[Any]) -> None:
    log = []

    def epochs() -> Iterator[Any]:
        try:
            yield WARMUP
            raise KeyboardInterrupt
        finally:
            log.append("saved")

    stopped = run(WARMUP)
    stopped.epochs = epochs
    with pytest.raises(KeyboardInterrupt):
        display.watch(stopped)
    assert log == ["saved"]
    assert pages == []  # a page is of a finished run


def test_the_table_has_a_row_for_each_run_and_dashes_for_what_is_unknown() -> None:
    known: dict[str, Any] = {"final_acc": 80.0, "best_acc": 81.25, "last_acc": 79.5, "clean_auc": 0.9876, "seconds": 65}
    unknown: dict[str, Any] = dict.fromkeys(known) | {"seconds": 5}
    known["epochs"], unknown["epochs"] = 4, 3
    written = io.StringIO()
    summaries: list[Any] = [{"method": "cross_entropy"} | unknown, {"method": "dividemix"} | known]
    table = display.result_table(summaries)
    Console(file=written, width=100).print(table)
    lines = [line.replace("│", " ").split() for line in written.getvalue().splitlines()]
    assert ["cross_entropy", "-", "-", "-", "-", "0:05"] in lines
    assert ["dividemix", "80.00", "81.25", "79.50", "0.988", "1:05"] in lines
    assert "mean of last 4 " in written.getvalue()


def test_the_table_leaves_out_what_no_run_has() -> None:
    written = io.StringIO()
    summary: Any = {"method": "robust", "final_acc": 80.0, "best_acc": 80.0, "last_acc": 80.0, "clean_auc": None}
    Console(file=written, width=100).print(display.result_table([summary | {"seconds": 5, "epochs": 1}]))
    assert "mean of last" not in written.getvalue()
    assert "clean AUC" not in written.getvalue()


def test_the_table_shows_the_kept_epoch_where_validation_samples_chose_one() -> None:
    figures: dict[str, Any] = {
        "final_acc": 80.0,
        "best_acc": 81.25,
        "last_acc": 79.5,
        "clean_auc": None,
        "seconds": 5,
        "epochs": 20,
    }
    chosen = figures | {"method": "dividemix", "kept_acc": 80.5, "kept_val_acc": 61.0}
    others: list[Any] = [
        figures | {"method": "cross_entropy", "kept_acc": 80.0},  # the last epoch
        dict.fromkeys(figures) | {"method": "untested", "seconds": 5, "epochs": 20},
    ]
    shown = []
    for summaries in (iter([*others, chosen]), others):
        written = io.StringIO()
        Console(file=written, width=100).print(display.result_table(summaries))
        shown.append([line.replace("│", " ").replace("┃", " ").split() for line in written.getvalue().splitlines()])
    assert ["method", "kept", "final", "best", "mean", "of", "last", "10", "time"] in shown[0]
    assert ["dividemix", "80.50", "80.00", "81.25", "79.50", "0:05"] in shown[0]
    assert ["cross_entropy", "80.00", "80.00", "81.25", "79.50", "0:05"] in shown[0]
    assert ["untested", "-", "-", "-", "-", "0:05"] in shown[0]
    assert ["cross_entropy", "80.00", "81.25", "79.50", "0:05"] in shown[1]
