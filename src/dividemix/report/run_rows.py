"""The rows of a finished run, read from the table that its settings name. No torch import."""

from pathlib import Path

import numpy as np

from dividemix.data.readers.row_table import read_row_table
from dividemix.data.readers.table_columns import TableColumns
from dividemix.errors import InputError
from dividemix.planning.job import read_settings
from dividemix.report.content import PageContent
from dividemix.report.own_copy import own_copy
from dividemix.report.row_cells import RowCells
from dividemix.report.shown import Shown


def run_rows(run: Path, content: PageContent, data: str | None = None) -> list[Shown] | None:
    """What is shown of each row, from the data of the run, or from `data`, where that is now; None for other samples.

    Raises:
        InputError: if the data is not there, or its rows are no longer those of the run.
    """
    settings = read_settings(run / "config.yaml", of_run=True)
    columns = TableColumns.of(settings).rows
    table = Path(data or str(settings["data"]))
    source = None if data else own_copy(run, "rows")
    if source is None:
        if columns is None:
            return None
        if not table.is_file():
            raise InputError(f"{table}: no such file: start in the folder where it was trained, or give data")
        source = read_row_table(table, columns)
    place = {row: i for i, row in enumerate(source.rows.tolist())}
    missing = next((row for row in content.sample_rows.tolist() if row not in place), None)
    if missing is not None:
        raise InputError(f"{table}: row {missing} is not where it was when the run was trained: give the right data")
    index = np.array([place[row] for row in content.sample_rows.tolist()], dtype=np.int64)
    cells = RowCells.of(np.asarray(source.train_samples)[index], content.labels)
    return [cells.shown(i) for i in range(len(index))]
