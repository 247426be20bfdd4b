"""Tables on a terminal: every cell is there in full, whatever the width."""

import io

import pytest
from epoch_rows import as_rows
from rich.console import Console

from dividemix.experiments.plans import make_plan
from dividemix.experiments.table_display import show
from dividemix.experiments.tables import fill, to_grid

PLAN = make_plan("table5", "paper", num_seeds=2)
ROWS = {
    run.name: as_rows([{"phase": "mix", "test_acc": 80.0 + k / 10, "test_acc_by_net": [70.0 + k / 10, 70.0]}])
    for k, run in enumerate(PLAN.runs)
}
GRID = to_grid(PLAN, fill(PLAN, ROWS))


def shown(*, width: int, is_terminal: bool) -> list[str]:
    text = io.StringIO()
    show(Console(file=text, width=width, force_terminal=is_terminal, color_system=None), GRID, "The title")
    return text.getvalue().splitlines()


@pytest.mark.parametrize("width", [70, 80, 120, 400])
def test_a_window_gets_every_cell_whole(width: int) -> None:
    lines = shown(width=width, is_terminal=True)
    assert max(map(len, lines)) <= width
    words = " ".join(" ".join(line.split()) for line in lines)
    for cell in {cell for line in GRID for cell in line[3:]} - {""}:
        assert cell in words
    num_parts = sum(line.strip() == "The title" for line in lines)
    for method in {line[0] for line in GRID[1:]}:
        assert [line.strip() for line in lines].count(method) == num_parts
    assert (num_parts == 1) == (width == 400)


def test_a_file_gets_it_in_one_piece() -> None:
    lines = shown(width=80, is_terminal=False)
    assert [line.strip() for line in lines].count("The title") == 1
    heading = next(line for line in lines if "asym" in line)
    assert all(name in heading for name in GRID[0][3:])


def test_values_stand_under_their_columns() -> None:
    """Each value ends where its column's heading ends."""
    lines = shown(width=400, is_terminal=True)
    heading = next(line for line in lines if "asym" in line)
    line = lines[[text.strip() for text in lines].index("DivideMix") + 2]
    wanted = next(row for row in GRID if row[:3] == ["DivideMix", "best", "ours, paper"])
    assert line.strip().startswith("best, ours, paper")
    for name, value in zip(GRID[0][3:-1], wanted[3:-1], strict=True):
        end = heading.index(f"{name} ") + len(name)
        assert line[:end].endswith(value)
