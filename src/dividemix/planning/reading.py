"""How a job's data is read, and what can be seen to be wrong with it before. No torch import."""

from collections.abc import Callable
from pathlib import Path

from dividemix.data.common_shape import LARGE
from dividemix.data.readers import source_reader
from dividemix.data.readers.paths import check_exists, is_table
from dividemix.data.readers.table_columns import TableColumns
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
        columns=columns_of(job),
        labels=job.labels,
        test=job.test,
        test_labels=job.test_labels,
        image_size=None if job.encoder_name not in (None, TFIDF) else job.image_size,
        large_size=large_size,
        memory_gb=job.memory_gb,
    )


def columns_of(job: Job) -> TableColumns:
    """What the job says of the columns of tables."""
    return TableColumns.of(job.values())
