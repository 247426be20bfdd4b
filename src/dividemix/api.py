"""The package from Python: train on data of any kind, find the labels that are wrong."""

import os
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dividemix.data.readers.arrays import read_arrays
from dividemix.display import watch
from dividemix.errors import InputError
from dividemix.planning.choices import Choice
from dividemix.planning.defaults import choose
from dividemix.planning.job import Job, data_name
from dividemix.planning.presets import preset_fields, preset_for
from dividemix.runs.directory import free_directory, refuse_existing
from dividemix.runs.run import Run

_OF_ARRAYS = ("true_labels", "test", "test_labels", "classes", "path_column", "label_column", "image_size", "memory_gb")


def train(
    data: Any,
    labels: Any = None,
    *,
    out: str | Path | None = None,
    preset: str | None = None,
    minutes: float | None = None,
    overwrite: bool = False,
    progress: bool = True,
    keep_data: bool = True,
    **settings: Any,
) -> Run:
    """A finished run on images with labels that may be wrong.

    `data` is whatever the command line takes: a folder, a table, an .npz file, a built-in name. Or it is images that a
    program holds, with `labels`: arrays, tensors, lists of paths or of Pillow images, a Hugging Face data set; then
    `true_labels`, `test`, `test_labels` and `classes` may be given as well, and the run directory keeps a copy, without
    which (`keep_data=False`) the run cannot be loaded again. Without `preset` it is the one that the command line takes
    for such data. `settings` are the command line's flags by name, such as epochs=20 or noise="symmetric:0.5".

    Raises:
        InputError: for whatever is wrong with the data or a setting.
    """
    source = None
    if labels is not None or not isinstance(data, str | os.PathLike):
        source = read_arrays(data, labels, **{key: settings.pop(key) for key in _OF_ARRAYS if key in settings})
        if keep_data and not source.in_memory:
            raise InputError("the images exceed memory_gb: raise it, or do without a copy by keep_data=False")
        data = "data.npz"
    given = {
        name: os.fspath(value) if isinstance(value, os.PathLike) else value
        for name, value in ({"data": data} | settings).items()
    }
    path = free_directory(data_name(given["data"])) if out is None else Path(out)
    refuse_existing(path, overwrite=overwrite)
    preset = preset or preset_for(given["data"], given.get("noise", "none"))
    if minutes is not None and (preset != "default" or "epochs" in given):
        raise InputError("minutes chooses the epochs of preset 'default': leave out epochs and other presets")
    job = Job.of(preset_fields(preset) | given)
    from_program = source is not None
    if source is not None and job.limit_train is not None:
        source = source.limit_train(job.limit_train)
        job = replace(job, limit_train=None)  # so that it is not limited again when the run is loaded
    choices: list[Choice] = []
    if preset == "default":
        source, choices = choose(job, given, minutes=minutes, source=source)
        job = Job.of(job.values() | {choice.name: choice.value for choice in choices})
    run = Run.create(
        path, job, overwrite=overwrite, source=source, choices=choices, keep_data=keep_data and from_program
    )
    if progress:
        watch(run)
    else:
        for _ in run.train():
            pass
    return run


def find_label_issues(
    data: Any, labels: Any = None, *, return_indices_ranked_by_score: bool = False, **settings: Any
) -> NDArray[Any]:
    """Which labels are wrong: a mask (N,), or the indices of the flagged samples, worst first.

    Both count all N samples as they were given: the elements of `data`, the rows of a table, the images of a folder in
    natural order. One that was not used, as it cannot be read or for a limit, is not flagged. `settings` are those of
    `train`. Nothing is left on the disk; to keep the model and the report, use `train`.
    """
    settings.setdefault("progress", False)
    with TemporaryDirectory() as folder:
        run = train(data, labels, out=Path(folder) / "run", keep_data=False, **settings)
        issues = run.label_issues()
    if return_indices_ranked_by_score:
        return run.material.rows[issues.order[: int(np.sum(issues.is_label_issue))]]
    mask = np.zeros(run.material.num_given, dtype=np.bool_)
    mask[run.material.rows] = issues.is_label_issue
    return mask
