"""A table of the paper with ours beside it: as a grid of text, as Markdown, as CSV; no torch import."""

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass

from dividemix.experiments.plans import Plan
from dividemix.experiments.published import PUBLISHED, Key
from dividemix.experiments.results import Figure, Rows, over_seeds
from dividemix.experiments.setups import DATA_NAMES

_REFERENCE = "DivideMix"  # the row that the others are compared with at mini scale


@dataclass(frozen=True)
class Cell:
    """A figure of the paper, if it has one there, and ours; `status` says what became of our runs."""

    key: Key
    data: str  # that ours is of; empty where none is
    published: float | None
    ours: Figure | None
    status: str  # not run (no such method in the package), done, incomplete, no figure (done, but it was not measured)

    @property
    def mean(self) -> float | None:
        """Ours without its deviation."""
        return None if self.ours is None else self.ours.mean


def fill(plan: Plan, rows: Mapping[str, Rows]) -> list[Cell]:
    """The cells of a table, row by row, from the epochs of each finished run by its name."""
    table = PUBLISHED[plan.name]
    columns = [column for column in table.columns if plan.scale == "paper" or _planned(plan, column)]
    cells = []
    for method in table.methods:
        for kind in table.kinds:
            for column in columns:
                key = (method, column, kind)
                source, published = plan.sources.get(key), table.values.get(key)
                if source is None or source.measure is None:
                    cells.append(Cell(key, "", published, None, "not run"))
                    continue
                done = [source.measure.of(rows[run.name]) for run in source.runs if run.name in rows]
                ours = over_seeds([value for value in done if value is not None])
                status = "incomplete" if len(done) < len(source.runs) else "no figure" if None in done else "done"
                cells.append(Cell(key, source.runs[0].job.data, published, ours, status))
    return cells


def _planned(plan: Plan, column: str) -> bool:
    return any(isinstance(key, tuple) and key[1] == column for key in plan.sources)


def to_csv(plan: Plan, cells: list[Cell]) -> str:
    """One line a cell; differences are to the paper at paper scale, to DivideMix at the same scale at mini scale."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_CSV_COLUMNS)
    references = {cell.key[1:]: cell for cell in cells if cell.key[0] == _REFERENCE}
    for cell in cells:
        ours = cell.ours
        reference = references.get(cell.key[1:])
        difference = to_reference = published_to_reference = None
        if plan.scale == "paper":
            difference = _minus(cell.mean, cell.published)
        elif reference is not None and reference is not cell:
            to_reference = _apart(cell, reference)
            published_to_reference = _minus(cell.published, reference.published)
        numbers = map(_exact, (cell.published, cell.mean, None if ours is None else ours.std))
        differences = map(_exact, (difference, published_to_reference, to_reference))
        num_seeds = ours.num_seeds if ours else 0
        writer.writerow([plan.name, plan.scale, cell.data, *cell.key, *numbers, num_seeds, *differences, cell.status])
    return text.getvalue()


_CSV_COLUMNS = (
    *("table", "scale", "data", "method", "column", "kind", "published", "ours", "std", "num_seeds"),
    *("ours_minus_published", "published_minus_dividemix", "ours_minus_dividemix", "status"),
)


def _minus(value: float | None, other: float | None) -> float | None:
    return None if value is None or other is None else value - other


def _apart(cell: Cell, other: Cell) -> float | None:
    """How far ours is from another row's; nothing while one of the two lacks seeds that the other may have."""
    return _minus(cell.mean, other.mean) if cell.status == other.status == "done" else None


def _exact(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def to_grid(plan: Plan, cells: list[Cell]) -> list[list[str]]:
    """The table as text, heading first: for each method and kind of figure the paper's line, ours and a difference."""
    lines: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        lines.setdefault((cell.key[0], cell.key[2]), []).append(cell)
    columns = [cell.key[1] for cell in next(iter(lines.values()))]
    mini = plan.scale == "mini"
    grid = [["method", "figure", "of", *(c.removeprefix("CIFAR-10 ") if mini else c for c in columns), "seeds"]]
    digits = _PAPER_DIGITS.get(plan.name, 1)
    for (method, kind), line in lines.items():
        not_run = all(cell.status == "not run" for cell in line)
        published = [_number(cell.published, digits) for cell in line]
        grid.append([method, kind, "paper, full scale" if mini else "paper", *published, "not run" if not_run else ""])
        if not_run:
            continue
        grid.append([method, kind, f"ours, {plan.scale}", *(_ours(cell) for cell in line), _seeds(line)])
        if not mini:
            differences = [_minus(cell.mean, cell.published) for cell in line]
            grid.append([method, kind, "difference", *(_signed(value) for value in differences), ""])
        elif method != _REFERENCE and (_REFERENCE, kind) in lines:
            pairs = list(zip(line, lines[_REFERENCE, kind], strict=True))
            papers = [_minus(cell.published, other.published) for cell, other in pairs]
            minis = [_apart(cell, other) for cell, other in pairs]
            grid.append([method, kind, f"paper, to {_REFERENCE}", *map(_signed, papers), ""])
            grid.append([method, kind, f"mini, to {_REFERENCE}", *map(_signed, minis), ""])
    return grid


_PAPER_DIGITS = {"table3": 2, "table4": 2}  # one everywhere else
_OUR_DIGITS = {"hours": 3}  # two everywhere else


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{value:+.2f}"


def _ours(cell: Cell) -> str:
    if cell.ours is None:
        return cell.status
    digits = _OUR_DIGITS.get(cell.key[2], 2)
    deviation = "" if cell.ours.std is None else f" ± {cell.ours.std:.{digits}f}"
    return f"{cell.ours.mean:.{digits}f}{deviation}"


def _seeds(line: list[Cell]) -> str:
    """How many seeds the line's figures are means of; "2-3" where some runs are missing."""
    counts = sorted({cell.ours.num_seeds if cell.ours else 0 for cell in line})
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]}-{counts[-1]}"


def heading(plan: Plan) -> str:
    """The table's title with its scale and, at mini scale, the images that stand for the paper's."""
    where = f" on {DATA_NAMES[plan.runs[0].job.data]}" if plan.scale == "mini" else ""
    return f"{PUBLISHED[plan.name].title}, {plan.scale} scale{where}"


def to_markdown(plan: Plan, cells: list[Cell], *, command: str, remarks: list[str]) -> str:
    """The table as a Markdown file: title, notes, the command, remarks on the runs, and the grid."""
    head, *body = (list(map(_escape, line)) for line in to_grid(plan, cells))
    lines = [f"# {heading(plan)}", ""]
    lines += [f"- {note}" for note in plan.notes]
    lines += [f"- Command: `{command}`", *(f"- {remark}" for remark in remarks)]
    lines += ["- ± is the sample standard deviation over seeds; a single seed has none.", ""]
    lines += [_row(head), _row(["---"] * 3 + ["---:"] * (len(head) - 3)), *map(_row, body)]
    return "\n".join(lines) + "\n"


def _row(fields: list[str]) -> str:
    return f"| {' | '.join(fields)} |"


def _escape(text: str) -> str:
    return text.replace("|", "\\|")
