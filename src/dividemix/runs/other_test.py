"""Other labelled data as the model of a run takes it: what a training reads as its test set. No training data is read.

Shapes: N samples, C classes.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dividemix.data.readers import with_samples_of
from dividemix.data.readers.column_files import ROW_FILES
from dividemix.data.readers.paths import check_exists
from dividemix.data.readers.text_rows import TEXT_FILES
from dividemix.data.source import Samples, Source
from dividemix.data.table_rows import as_rows
from dividemix.data.texts import as_texts
from dividemix.errors import InputError
from dividemix.model.model import Model
from dividemix.model.row_input import RowInput
from dividemix.planning.job import Job
from dividemix.planning.reading import columns_of

_BATCH = 256


def read_test(model: Model, job: Job) -> Source:
    """The job's `test` as test samples and labels among the model's classes; the training samples are blank.

    Raises InputError if it cannot be read, has samples of another kind or size, or a label that is no class.
    """
    data, kind = str(job.test), model.kind
    check_exists(data, "test")
    for column, of, files in (("text_column", "texts", TEXT_FILES), ("target", "rows", ROW_FILES)):
        if kind == of and Path(data).suffix.lower() not in files:
            raise InputError(f"{data}: the run was trained on {of}: give a {', '.join(files[:-1])} or {files[-1]} file")
        if kind == of and getattr(job, column) is None:
            raise InputError(f"{data}: the run does not say which column has them: name it by {column}")
        if kind != of and getattr(job, column) is not None:
            raise InputError(f"{column} has no meaning for the run, which was trained on {kind}: leave it out")
    return with_samples_of(
        _blank(model, data),
        data,
        columns=columns_of(job),
        labels=job.test_labels,
        memory_gb=job.memory_gb,
    )


def predict_each(model: Model, samples: Samples) -> NDArray[np.float32]:
    """Probabilities (N, C) of samples, of which a batch at a time is in memory."""
    starts = range(0, len(samples), _BATCH)
    return np.concatenate([model.predict_proba(samples[start : start + _BATCH]) for start in starts])


def _blank(model: Model, name: str) -> Source:
    """Two blank samples of the kind and size that the model takes, with its classes."""
    shape = (2, *model.takes.shape)
    samples: NDArray[np.generic] = np.zeros(shape, np.uint8 if model.kind == "images" else np.float32)
    if model.kind == "texts":
        samples = as_texts(["-", "-"])
    elif isinstance(model.takes, RowInput):
        samples = as_rows(
            {
                column.name: np.zeros(2) if column.categories is None else ["-", "-"]
                for column in model.takes.columns.columns
            }
        )
    return Source(name=name, classes=tuple(map(str, model.classes)), train_samples=samples, train_labels=np.arange(2))
