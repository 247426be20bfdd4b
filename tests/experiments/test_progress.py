"""What is shown of made-up events, off a terminal line by line and on one as text among its bars."""

import contextlib
import io

import pytest
from epoch_rows import as_row
from rich.console import Console
from toy_plan import toy_run

from dividemix.experiments.followed import Event
from dividemix.experiments.progress import RunsDisplay

GOOD, BAD = toy_run("good", epochs=10), toy_run("bad", epochs=10)
EVENTS = [
    Event("began", GOOD),
    Event("began", BAD),
    Event("printed", BAD, line="warning: not so good"),
    *(Event("epoch", GOOD, row=as_row({"epoch": epoch, "test_acc": 80 + epoch})) for epoch in range(1, 11)),
    Event("epoch", BAD, row=as_row({"epoch": 10, "test_acc": None})),
    Event("ended", GOOD),
    Event("ended", BAD, error="it is bad"),
]


def shown(*, terminal: bool) -> str:
    text = io.StringIO()
    console = Console(file=text, force_terminal=terminal, width=150, color_system=None, highlight=False, markup=False)
    with RunsDisplay(console, 2) as display:
        for event in EVENTS:
            display.show(event)
    return text.getvalue()


def test_off_a_terminal_a_run_says_a_few_lines() -> None:
    lines = shown(terminal=False).splitlines()
    assert lines[:2] == ["good: begins", "bad: begins"]
    assert lines[2] == "bad: warning: not so good"
    assert lines[3:8] == [f"good: epoch {epoch}/10  test {80 + epoch:.2f} %" for epoch in (2, 4, 6, 8, 10)]
    assert lines[-2].startswith("[1/2] good: finished in ")
    assert lines[-1] == "[2/2] bad: failed: it is bad"


@pytest.mark.parametrize(
    "text", ["all runs", "bad: warning: not so good", "[1/2] good: finished in ", "[2/2] bad: failed: it is bad"]
)
def test_on_a_terminal_there_are_bars_and_the_endings(text: str) -> None:
    assert text in shown(terminal=True)


def test_an_error_leaves_the_terminal_as_it_was() -> None:
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=150)
    with contextlib.suppress(KeyboardInterrupt), RunsDisplay(console, 1) as display:
        display.show(Event("began", GOOD))
        raise KeyboardInterrupt
    hidden, back = text.getvalue().rfind("\x1b[?25l"), text.getvalue().rfind("\x1b[?25h")
    assert -1 < hidden < back  # the cursor
