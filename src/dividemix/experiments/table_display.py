"""A table on the terminal, cut into parts that fit the width of the window."""

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console
from rich.table import Table

_GAP = 3  # the width of a column beyond its text

Grid = Sequence[Sequence[str]]  # from tables.to_grid: method, figure, of, a column for each value, seeds


def show(console: Console, grid: Grid, title: str) -> None:
    """Print the grid. Columns that do not fit the window follow below; a file is as wide as needed."""
    for part in _parts(list(_labelled(grid)), console.width if console.is_terminal else None):
        head, *body = part
        table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
        table.add_column(head[0], overflow="fold")
        for name in head[1:]:
            table.add_column(name, justify="right", no_wrap=True)
        for line in body:
            table.add_row(*line)
        if not console.is_terminal:
            console.width = max(console.width, sum(_widths(part)) + 1)
        console.print(table)


def _labelled(grid: Grid) -> Iterator[list[str]]:
    """The grid with one column of labels: each method on its own line, above its figures."""
    head, *body = grid
    yield ["", *head[3:]]
    method = None
    for line in body:
        if line[0] != method:
            method = line[0]
            yield [method, *[""] * (len(head) - 3)]
        yield [f"  {line[1]}, {line[2]}", *line[3:]]


def _parts(lines: list[list[str]], width: int | None) -> Iterator[list[list[str]]]:
    """The lines in parts of at most that width; each part has the labels on its left and the seeds on its right."""
    label, *values, seeds = _widths(lines)
    first = 1
    while first <= len(values):
        end, taken = first + 1, label + seeds + values[first - 1] + 1
        while end <= len(values) and (width is None or taken + values[end - 1] <= width):
            taken += values[end - 1]
            end += 1
        yield [[line[0], *line[first:end], line[-1]] for line in lines]
        first = end


def _widths(lines: list[list[str]]) -> list[int]:
    return [max(len(line[c]) for line in lines) + _GAP for c in range(len(lines[0]))]
