"""A table of the paper with our figures next to it: as a grid of text, as Markdown, as CSV. No torch import."""

import csv
import io
import itertools
from collections.abc import Mapping
from dataclasses import dataclass

from dividemix.experiments.plans import Plan
from dividemix.experiments.published import PUBLISHED, Key
from dividemix.experiments.results import Figure, Rows, over_seeds
from dividemix.experiments.setups import DATA_NAMES

_REFERENCE = "DivideMix"  # the row that the others are compared with at mini scale
_PAPER_DIGITS = {"table3": 2, "table4": 2}  # one everywhere else
_OUR_DIGITS = {"hours": 3}  # two everywhere else


@dataclass(frozen=True)
class Cell:
    """A figure of the paper, if it has one, and ours; `status` is the state of our runs."""

    key: Key
    data: str  # that our runs used; empty without any
    published: float | None
    ours: Figure | None
    status: str  # not run (no such method in the package), done, incomplete, no figure (done, but it was not measured)

    @property
    def mean(self) -> float | None:
        """Ours without its deviation."""
        return None if self.ours is None else self.ours.mean

    @property
    def num_seeds(self) -> int:
        """How many seeds our figure is a mean of."""
        return 0 if self.ours is None else self.ours.num_seeds


def fill(plan: Plan, rows: Mapping[str, Rows]) -> list[Cell]:
    """The cells of a table, row by row, from the epochs of each finished run by its name."""
    table = PUBLISHED[plan.name]
    planned = {key[1] for key in plan.sources if isinstance(key, tuple)}
    columns = [column for column in table.columns if plan.scale == "paper" or column in planned]
    cells = []
    for method, kind, column in itertools.product(table.methods, table.kinds, columns):
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


_CSV_COLUMNS = (
    *("table", "scale", "data", "method", "column", "kind", "published", "ours", "std", "num_seeds"),
    *("ours_minus_published", "published_minus_dividemix", "ours_minus_dividemix", "status"),
)


def to_csv(plan: Plan, cells: list[Cell]) -> str:
    """One line for each cell; differences are to the paper at paper scale, to our DivideMix at mini scale."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_CSV_COLUMNS)
    references = {cell.key[1:]: cell for cell in cells if cell.key[0] == _REFERENCE}
    for cell in cells:
        reference = references.get(cell.key[1:])
        difference = to_reference = published_to_reference = None
        if plan.scale == "paper":
            difference = _minus(cell.mean, cell.published)
        elif reference is not None and reference is not cell:
            to_reference = _apart(cell, reference)
            published_to_reference = _minus(cell.published, reference.published)
        numbers = (cell.published, cell.mean, None if cell.ours is None else cell.ours.std)
        differences = (difference, published_to_reference, to_reference)
        writer.writerow(
            [plan.name, plan.scale, cell.data, *cell.key]
            + [_text(number, ".6g", missing="") for number in numbers]
            + [cell.num_seeds, *(_text(number, ".6g", missing="") for number in differences), cell.status]
        )
    return text.getvalue()


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
        published = [_text(cell.published, f".{digits}f") for cell in line]
        grid.append([method, kind, "paper, full scale" if mini else "paper", *published, "not run" if not_run else ""])
        if not_run:
            continue
        counts = sorted({cell.num_seeds for cell in line})
        seeds = str(counts[0]) if len(counts) == 1 else f"{counts[0]}-{counts[-1]}"  # 2-3 if some runs are missing
        grid.append([method, kind, f"ours, {plan.scale}", *map(_ours, line), seeds])
        differences = {}
        if not mini:
            differences["difference"] = [_minus(cell.mean, cell.published) for cell in line]
        elif method != _REFERENCE and (_REFERENCE, kind) in lines:
            pairs = list(zip(line, lines[_REFERENCE, kind], strict=True))
            differences[f"paper, to {_REFERENCE}"] = [_minus(cell.published, other.published) for cell, other in pairs]
            differences[f"mini, to {_REFERENCE}"] = [_apart(cell, other) for cell, other in pairs]
        grid += [[method, kind, of, *(_text(value, "+.2f") for value in d), ""] for of, d in differences.items()]
    return grid


def _minus(value: float | None, other: float | None) -> float | None:
    return None if value is None or other is None else value - other


def _apart(cell: Cell, other: Cell) -> float | None:
    """Our figure minus that of another row; None unless both have all their seeds."""
    return _minus(cell.mean, other.mean) if cell.status == other.status == "done" else None


def _text(value: float | None, form: str, missing: str = "-") -> str:
    return missing if value is None else format(value, form)


def _ours(cell: Cell) -> str:
    if cell.ours is None:
        return cell.status
    form = f".{_OUR_DIGITS.get(cell.key[2], 2)}f"
    deviation = "" if cell.ours.std is None else f" ± {cell.ours.std:{form}}"
    return f"{cell.ours.mean:{form}}{deviation}"


def heading(plan: Plan) -> str:
    """The table's title with its scale and, at mini scale, the images that replace the paper's."""
    where = f" on {DATA_NAMES[plan.runs[0].job.data]}" if plan.scale == "mini" else ""
    return f"{PUBLISHED[plan.name].title}, {plan.scale} scale{where}"


def to_markdown(plan: Plan, cells: list[Cell], *, command: str, remarks: list[str]) -> str:
    """The table as a Markdown file: title, notes, the command, remarks on the runs, and the grid."""
    head, *body = to_grid(plan, cells)
    items = [*plan.notes, f"Command: `{command}`", *remarks]
    items += ["± is the sample standard deviation over seeds; a single seed has none."]
    table = [_row(head), _row(["---"] * 3 + ["---:"] * (len(head) - 3)), *map(_row, body)]
    return "\n".join([f"# {heading(plan)}", "", *(f"- {item}" for item in items), "", *table, ""])


def _row(fields: list[str]) -> str:
    escaped = (field.replace("|", "\\|") for field in fields)
    return f"| {' | '.join(escaped)} |"
