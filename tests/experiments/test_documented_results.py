"""Our tables in docs/experiments.md against docs/results, the files that the commands wrote."""

import re
from pathlib import Path

import pytest

from dividemix.experiments.plans import make_plan

DOCS = Path(__file__).parents[2] / "docs"
FILES = {  # by the heading of the section
    "Table 1, CIFAR-10's images (version 0.1)": "table1-mini-cifar10.md",
    "Table 2, the embedded set": "table2-mini-fashion.md",
    "Table 5, the embedded set (version 0.1)": "table5-mini-fashion.md",
    "Table 6, the embedded set": "table6-mini-fashion.md",
}
Cells = dict[tuple[str, str, str], str]  # by method, figure and column


def grid(text: str) -> tuple[list[str], list[list[str]]]:
    """Heading and lines of the first table in a text."""
    head, _, *lines = ([cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if "|" in line)
    return head, lines


def documented(table: str) -> Cells:
    text = (DOCS / "experiments.md").read_text().split(f"### {table}\n")[1]
    head, lines = grid(re.split(r"^### ", text, flags=re.M)[0])
    return {(line[0], line[1], column): cell for line in lines for column, cell in zip(head, line, strict=True)}


def measured(name: str) -> Cells:
    head, lines = grid((DOCS / "results" / name).read_text())
    ours = [line[:2] + line[3:-1] for line in lines if line[2].startswith("ours, mini")]
    return {
        (line[0], line[1], column): cell
        for line in ours
        for column, cell in zip(head[:2] + head[3:-1], line, strict=True)
    }


@pytest.mark.parametrize("table", FILES)
def test_every_figure_is_the_one_that_was_measured(table: str) -> None:
    assert documented(table) == measured(FILES[table])
    assert len(measured(FILES[table])) >= 15


@pytest.mark.parametrize("table", FILES)
def test_what_was_measured_is_what_would_be_trained_now(table: str) -> None:
    """Images, net and epochs: settings that change make the documented figures those of another experiment."""
    root = "somewhere" if "cifar10" in FILES[table] else None
    plan = make_plan(FILES[table].partition("-")[0], "mini", root=root)
    assert f"- {plan.notes[0]}\n" in (DOCS / "results" / FILES[table]).read_text()
