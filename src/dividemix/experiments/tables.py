"""A table of the paper with our figures next to it: as a grid of text, as Markdown, as CSV. No torch import."""

import csv
import io
import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from dividemix.experiments.plans import Plan
from dividemix.experiments.published import PUBLISHED, Key
from dividemix.experiments.results import Figure, Measure, Rows, over_seeds
from dividemix.experiments.setups import DATA_NAMES
from dividemix.experiments.systems import ADDED, BETTER_OF

_REFERENCE = "DivideMix"  # the row that the others are compared with at mini scale
_UNIT_OF_TIME = "Cross-Entropy"  # the row whose time the others' are multiples of
_PAPER_DIGITS = {"table3": 2, "table4": 2}  # one everywhere else
_OUR_DIGITS = {"hours": 4}  # two everywhere else
_CPU_HOURS = Measure("hours", "cpu_seconds")


@dataclass(frozen=True)
class Cell:
    """A figure of the paper, if it has one, and ours; `status` is the state of our runs."""

    key: Key
    data: str  # that our runs used; empty without any
    published: float | None
    ours: Figure | None
    status: str  # not run (no such method in the package), done, incomplete, no figure (done, but it was not measured)
    stand_in: bool = False  # whether our runs had a stand-in for images with trusted labels
    cpu_hours: float | None = None  # of a time: the mean processor time of our runs, if CPUs trained them

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
    keys = itertools.product(plan.rows, PUBLISHED[plan.name].kinds, plan.columns)
    return [_cell(plan, rows, (method, column, kind)) for method, kind, column in keys]


def _cell(plan: Plan, rows: Mapping[str, Rows], key: Key) -> Cell:
    method, column, kind = key
    source, published = plan.sources.get(key), PUBLISHED[plan.name].values.get(key)
    if method in BETTER_OF:
        variants = [_cell(plan, rows, (variant, column, kind)) for variant in BETTER_OF[method]]
        better = max(variants, key=lambda cell: -math.inf if cell.mean is None else cell.mean)
        unfinished = [cell.status for cell in variants if cell.status != "done"]
        return replace(better, key=key, published=published, status=unfinished[0] if unfinished else "done")
    if source is None or source.measure is None:
        return Cell(key, "", published, None, "not run")
    epochs = [rows[run.name] for run in source.runs if run.name in rows]
    done = [source.measure.of(each) for each in epochs]
    ours = over_seeds([value for value in done if value is not None])
    status = "incomplete" if len(done) < len(source.runs) else "no figure" if None in done else "done"
    stand_in = any(row.get("figures", {}).get("trusted_stand_in") for each in epochs for row in each)
    cpu = over_seeds([hours for each in epochs if (hours := _CPU_HOURS.of(each)) is not None])
    cpu_hours = None if kind != "hours" or cpu is None or cpu.num_seeds < len(epochs) else cpu.mean
    return Cell(key, source.runs[0].job.data, published, ours, status, stand_in, cpu_hours)


_CSV_COLUMNS = (
    *("table", "scale", "data", "method", "column", "kind", "published", "ours", "std", "num_seeds"),
    *("ours_minus_published", "published_minus_dividemix", "ours_minus_dividemix", "ours_over_cross_entropy"),
    *("trusted", "status"),
)


def to_csv(plan: Plan, cells: list[Cell]) -> str:
    """One line for each cell; differences are to the paper at paper scale, to our DivideMix at mini scale."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_CSV_COLUMNS)
    by_key = {cell.key: cell for cell in cells}
    for cell in cells:
        reference = by_key.get((_REFERENCE, *cell.key[1:]))
        difference = to_reference = published_to_reference = factor = None
        if plan.scale == "paper":
            difference = _minus(cell.mean, cell.published)
        elif reference is not None and reference is not cell:
            to_reference = _apart(cell, reference)
            published_to_reference = _minus(cell.published, reference.published)
        if cell.key[2] == "hours":
            factor = _times(cell, by_key.get((_UNIT_OF_TIME, *cell.key[1:])))
        numbers = (cell.published, cell.mean, None if cell.ours is None else cell.ours.std)
        comparisons = (difference, published_to_reference, to_reference, factor)
        writer.writerow(
            [plan.name, plan.scale, cell.data, *cell.key]
            + [_text(number, ".6g", missing="") for number in numbers]
            + [cell.num_seeds, *(_text(number, ".6g", missing="") for number in comparisons)]
            + ["stand-in" if cell.stand_in else "", cell.status]
        )
    return text.getvalue()


def to_grid(plan: Plan, cells: list[Cell]) -> list[list[str]]:
    """The table as text, heading first: for each method and kind of figure the paper's line, ours and comparisons."""
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
        if method not in ADDED.get(plan.name, ()):
            of = "paper, full scale" if mini else "paper"
            grid.append([method, kind, of, *published, "not run" if not_run else ""])
        if not_run:
            continue
        counts = sorted({cell.num_seeds for cell in line})
        seeds = str(counts[0]) if len(counts) == 1 else f"{counts[0]}-{counts[-1]}"  # 2-3 if some runs are missing
        stand_in = ", stand-in" if any(cell.stand_in for cell in line) else ""
        grid.append([method, kind, f"ours, {plan.scale}{stand_in}", *map(_ours, line), seeds])
        grid += [[method, kind, *texts, ""] for texts in _comparisons(line, lines, mini=mini)]
    return grid


def _comparisons(line: list[Cell], lines: Mapping[tuple[str, str], list[Cell]], *, mini: bool) -> Iterator[list[str]]:
    """What is below a row's figures: differences to the paper or to the reference, and a time as a multiple."""
    method, _, kind = line[0].key
    if not mini:
        yield ["difference", *(_text(_minus(cell.mean, cell.published), "+.2f") for cell in line)]
    if kind == "hours" and (_UNIT_OF_TIME, kind) in lines:
        pairs = list(zip(line, lines[_UNIT_OF_TIME, kind], strict=True))
        yield [f"ours, x {_UNIT_OF_TIME}", *(_text(_times(cell, other), ".2f") for cell, other in pairs)]
    elif mini and method != _REFERENCE and (_REFERENCE, kind) in lines:
        pairs = list(zip(line, lines[_REFERENCE, kind], strict=True))
        published = [_minus(cell.published, other.published) for cell, other in pairs]
        if any(value is not None for value in published):
            yield [f"paper, to {_REFERENCE}", *(_text(value, "+.2f") for value in published)]
        yield [f"mini, to {_REFERENCE}", *(_text(_apart(cell, other), "+.2f") for cell, other in pairs)]


def _minus(value: float | None, other: float | None) -> float | None:
    return None if value is None or other is None else value - other


def _apart(cell: Cell, other: Cell) -> float | None:
    """Our figure minus that of another row; None unless both have all their seeds."""
    return _minus(cell.mean, other.mean) if cell.status == other.status == "done" else None


def _times(cell: Cell, other: Cell | None) -> float | None:
    """Our time divided by that of another row; None unless both have all their seeds.

    It is the processor time if both have it: two runs may have shared their machine with other programs.
    """
    if other is None or not cell.status == other.status == "done":
        return None
    if cell.cpu_hours and other.cpu_hours:
        return cell.cpu_hours / other.cpu_hours
    return cell.mean / other.mean if cell.mean and other.mean else None


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
