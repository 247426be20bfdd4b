"""The figures of the paper's tables of results (1 to 6, 8 and 9), read from published.txt. No torch import."""

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

Key = tuple[str, str, str]  # method, column, kind of figure


@dataclass(frozen=True)
class PublishedTable:
    """A table of the paper; `values` has its figures by method, column and kind, in the paper's order."""

    name: str
    title: str
    columns: tuple[str, ...]
    values: Mapping[Key, float]

    @property
    def methods(self) -> tuple[str, ...]:
        """Its rows."""
        return tuple(dict.fromkeys(method for method, _, _ in self.values))

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of figure in each row, such as best and last."""
        return tuple(dict.fromkeys(kind for _, _, kind in self.values))


def read_table(block: str) -> PublishedTable:
    """The table in a block of lines as published.txt has them; ValueError if a line has another form, or is missing."""
    title, heading, *lines = block.splitlines()
    columns = tuple(heading.split(", "))
    form = rf"([^|]*[^| ]) *\| ([^| ]+) +\|((?: +(?:\d+\.\d+|-)){{{len(columns)}}})"
    rows, values = [], dict[Key, float]()
    for line in lines:
        found = re.fullmatch(form, line)
        if found is None:
            raise ValueError(
                f"{title}: {line!r} must be: method | kind | a figure or - for each of {len(columns)} columns"
            )
        method, kind, figures = found.groups()
        rows.append((method, kind))
        for column, figure in zip(columns, figures.split(), strict=True):
            if figure != "-":
                values[method, column, kind] = float(figure)
    table = PublishedTable(title.partition(":")[0].replace(" ", "").lower(), title, columns, values)
    if sorted(rows) != sorted(itertools.product(table.methods, table.kinds)) or len(set(columns)) < len(columns):
        raise ValueError(f"{title}: a column is named twice, or a method does not have one line for each kind")
    return table


_TEXT = (resources.files("dividemix.experiments") / "published.txt").read_text(encoding="utf-8")
_TABLES = [read_table(block) for block in _TEXT.split("\n\n")[1:]]  # the first block describes the others
PUBLISHED: dict[str, PublishedTable] = {table.name: table for table in _TABLES}
