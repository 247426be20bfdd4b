"""The texts of a finished run, read from the table that its settings name. No torch import."""

from pathlib import Path

import numpy as np

from dividemix.data.readers.text_rows import read_text_rows
from dividemix.errors import InputError
from dividemix.planning.job import read_settings
from dividemix.report.content import PageContent
from dividemix.report.own_copy import own_copy


def run_texts(run: Path, content: PageContent, data: str | None = None) -> list[str] | None:
    """The text of each sample, from the data of the run, or from `data`, where that is now; None for other samples.

    Raises:
        InputError: if the data is not there, or its rows are no longer those of the run.
    """
    settings = read_settings(run / "config.yaml", of_run=True)
    table = Path(data or str(settings["data"]))
    source = None if data else own_copy(run, "texts")
    if source is None:
        if settings.get("text_column") is None:
            return None
        if not table.is_file():
            raise InputError(f"{table}: no such file: start in the folder where it was trained, or give data")
        source = read_text_rows(table, str(settings["text_column"]), str(settings.get("label_column") or "label"))
    assert isinstance(source.train_samples, np.ndarray)
    texts = dict(zip(source.rows.tolist(), source.train_samples.tolist(), strict=True))
    missing = next((row for row in content.sample_rows.tolist() if row not in texts), None)
    if missing is not None:
        raise InputError(f"{table}: text {missing} is not where it was when the run was trained: give the right data")
    return [str(texts[row]) for row in content.sample_rows.tolist()]
