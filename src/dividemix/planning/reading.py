"""How a job's data is read, and what can be seen to be wrong with it before. No torch import."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from dividemix.data.column_types import RowColumns
from dividemix.data.common_shape import LARGE
from dividemix.data.readers import check_exists, is_table, source_reader
from dividemix.data.source import Source
from dividemix.errors import InputError
from dividemix.foreign import TFIDF
from dividemix.planning.job import Job


def check_reading(job: Job) -> None:
    """Raise InputError for what can be seen to be wrong with the job's data before it is read."""
    if job.image_root is not None and not any(map(is_table, (job.data, job.test, job.trusted))):
        raise InputError(
            f"image_root {job.image_root} has no meaning for {job.data}, which is not a table: leave it out"
        )
    data_reader(job, LARGE)
    if job.trusted is not None:
        check_exists(job.trusted, "trusted")


def data_reader(job: Job, large_size: int) -> Callable[[], Source]:
    """What reads the job's data."""
    return source_reader(
        job.data,
        None if job.root is None else Path(job.root),
        test=job.test,
        image_size=None if job.encoder_name not in (None, TFIDF) else job.image_size,
        large_size=large_size,
        features_column=job.features_column,
        text_column=job.text_column,
        row_columns=row_columns_of(job),
        labels=job.labels,
        test_labels=job.test_labels,
        memory_gb=job.memory_gb,
        annotators=job.annotators,
        annotator_column=job.annotator_column,
        **columns_of(job),
    )


def row_columns_of(job: Job) -> RowColumns | None:
    """The columns of a table whose rows are the samples; None if the job has others."""
    return RowColumns.of(
        job.target, key=job.key, numeric=job.numeric, categorical=job.categorical, drop=job.drop_columns
    )


def columns_of(job: Job) -> dict[str, Any]:
    """What the job says of tables."""
    image_root = None if job.image_root is None else Path(job.image_root)
    return {"path_column": job.path_column, "label_column": job.label_column, "image_root": image_root}
