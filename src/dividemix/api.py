"""The package from Python: train on noisy labels, and find the wrong ones."""

import os
import time
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dividemix.data.column_types import RowColumns
from dividemix.data.readers.arrays import read_arrays
from dividemix.data.regression import refuse_regression
from dividemix.display import watch
from dividemix.engine.processes import joined, num_joined, rank
from dividemix.errors import CautionWarning, InputError, SkippedSamplesWarning
from dividemix.nets.given import net_name
from dividemix.planning.check_job import check_job
from dividemix.planning.job import JOB_FIELDS
from dividemix.planning.plan import make_draft, make_plan
from dividemix.report.of_run import page_seconds, write_report
from dividemix.runs.creation import refuse_existing
from dividemix.runs.run import Run
from dividemix.runs.shown import skipped_words
from dividemix.runs.together import follow
from dividemix.runs.tracking import parse_log, tracked
from dividemix.session import say_opening
from dividemix.settings import Field, checked_path

_OF_ARRAYS = (
    *("true_labels", "test", "test_labels", "classes", "annotators", "annotator_column"),
    *("path_column", "label_column", "features_column", "text_column"),
    *("image_root", "image_size", "memory_gb"),
)

_ARGUMENTS = (  # of `train`, in the order in which `_trained` takes them
    Field("preset", str, None, "", optional=True),
    Field("minutes", float, None, "", optional=True),
    Field("overwrite", bool, False, ""),
    Field("progress", bool, True, ""),
    Field("keep_data", bool, True, ""),
    Field("log", str, None, "", optional=True),
)


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
    log: str | None = None,
    **settings: Any,
) -> Run:
    """Train on images, texts, rows or vectors with labels that may be wrong, and return the finished run.

    `data` is what the command line takes: a folder, a table, an .npz file, an .npy file with a file of `labels`, or the
    name of a built-in set. Or it is samples in memory, with `labels`: arrays of images or of vectors (N, D), tensors,
    lists of paths, of Pillow images, of texts or of vectors. Labels may also come with the samples: pairs in a list or
    in a `Dataset` of torch, a table of pandas or polars, a Hugging Face data set. With `target`, the rows of a table,
    or of a list of dicts, are the samples; with `text_column`, a column of texts. Then `true_labels`, `test`,
    `test_labels` and `classes` may be given, too. The run directory keeps a copy of samples in memory. With
    `keep_data=False` it does not, and the run cannot be loaded again. Without `preset`, the preset is chosen by the
    data, as on the command line. `settings` are the flags of the command line by name, such as epochs=20 or
    noise="symmetric:0.5"; `net` may also be a torch.nn.Module, or a function that makes one. `log` names trackers, such
    as "tensorboard,mlflow".

    What to read before trusting the flags is a CautionWarning, and what was skipped a SkippedSamplesWarning, of
    `dividemix.errors`.

    Raises:
        InputError: if something is wrong with the data or a setting.
    """
    arguments = {"preset": preset, "minutes": minutes, "overwrite": overwrite, "progress": progress}
    run = _trained(data, labels, out, arguments | {"keep_data": keep_data, "log": log}, settings)
    _warn(run, run.directory.path / "skipped.csv")
    return run


def _trained(
    data: Any, labels: Any, out: Any, arguments: dict[str, Any], settings: dict[str, Any], *, keeps_files: bool = True
) -> Run:
    """The finished run of `train`, whose `arguments` these are. Several processes share files, which they need."""
    preset, minutes, overwrite, progress, keep_data, log = (
        field.checked(arguments.pop(field.name, field.default)) for field in _ARGUMENTS
    )
    settings = {name: value.item() if isinstance(value, np.generic) else value for name, value in settings.items()}
    began = time.monotonic()
    out = None if out is None else checked_path(out, "out")
    source, trackers = None, parse_log(log)
    if isinstance(data, str | os.PathLike) and isinstance(labels, str | os.PathLike):
        settings["labels"], labels = labels, None
    if labels is not None or not isinstance(data, str | os.PathLike):
        memory_gb = settings.get("memory_gb", 4.0)
        for_encoder = ("image_size",) if settings.get("encoder") else ()  # it resizes the images itself
        taken = [key for key in _OF_ARRAYS if key in settings and key not in for_encoder]
        source = read_arrays(
            data, labels, row_columns=_row_columns(settings), **{key: settings.pop(key) for key in taken}
        )
        refuse_regression(source, "data")
        settings["memory_gb"] = memory_gb  # which the copy must fit in, when the run is loaded
        if keep_data and (not source.in_memory or source.num_bytes > memory_gb * 1e9):
            raise InputError("the samples exceed memory_gb: raise it, or keep no copy with keep_data=False")
        data = "data.npz"
    elif isinstance(settings.get("annotators"), list | tuple):  # the columns of a table
        settings["annotators"] = ",".join(map(str, settings["annotators"]))
    if not isinstance(settings.get("net", ""), str):
        settings["net"] = net_name(settings["net"])
    given = {
        name: os.fspath(value) if isinstance(value, os.PathLike) else value
        for name, value in ({"data": data} | settings).items()
    }
    with joined():
        if rank():  # of several processes the others follow the first
            followed = follow()
            assert followed is not None
            return followed
        if source is None:
            check_job(make_draft(given, preset=preset, minutes=minutes).job)
        if out is not None:
            refuse_existing(out, overwrite=overwrite)  # before the data is read, which may take minutes
        plan = make_plan(given, preset=preset, minutes=minutes, source=source, began=began)
        run = Run.create(
            Path("runs") / plan.name if out is None else out,
            plan.job,
            overwrite=overwrite,
            source=plan.source,
            choices=plan.choices,
            keep_data=keep_data and source is not None,
            numbered=out is None,
            budget=plan.budget,
        )
        run.keeps_files = keeps_files or num_joined() > 1
        del plan, source  # the run has its own copy of the data: what was read may be large
        if progress:
            say_opening(run)
            watch(run, trackers)
        else:
            if run.budget is not None and run.keeps_files:
                run.page_seconds = page_seconds(run)
            with tracked(run, trackers) as epochs:
                for _ in epochs:
                    pass
            if run.keeps_files:
                write_report(run)
    return run


def _warn(run: Run, skipped: Path | None = None) -> None:
    """Warn the caller's caller of what the command line prints: samples that were skipped, and cautions."""
    if run.material.skipped:
        warnings.warn(skipped_words(run.material, skipped), SkippedSamplesWarning, stacklevel=3)
    for caution in run.summary().get("cautions", []):
        warnings.warn(caution, CautionWarning, stacklevel=3)


def _row_columns(settings: dict[str, Any]) -> RowColumns | None:
    """The columns of a table in memory, taken out of the settings: the run's copy has the rows as they are used."""
    named = {name: settings.pop(name, None) for name in ("target", "key", "numeric", "categorical", "drop_columns")}
    texts = {name: ",".join(map(str, one)) if isinstance(one, list | tuple) else one for name, one in named.items()}
    for name, text in texts.items():
        JOB_FIELDS[name].checked(text)
    return RowColumns.of(texts.pop("target"), drop=texts.pop("drop_columns"), **texts)


def find_label_issues(
    data: Any, labels: Any = None, *, return_indices_ranked_by_score: bool = False, **settings: Any
) -> NDArray[Any]:
    """Find the wrong labels: a mask (N,), or the indices of the flagged samples, worst first.

    N counts all samples as given: the elements of `data`, the rows of a table, the images of a folder in natural
    order. A sample that was not used (it cannot be read, or a limit excludes it) is not flagged. `settings` are those
    of `train`, and so are the warnings. No files are kept: use `train` to keep the model and the report.
    """
    if kept := [name for name in ("out", "keep_data", "overwrite") if name in settings]:
        raise InputError(f"{kept[0]} cannot be used here: no files are kept; use train to keep the run")
    Field("return_indices_ranked_by_score", bool, False, "").checked(return_indices_ranked_by_score)
    arguments = {field.name: settings.pop(field.name) for field in _ARGUMENTS if field.name in settings}
    arguments = {"progress": False} | arguments | {"keep_data": False}
    with TemporaryDirectory() as folder:
        run = _trained(data, labels, Path(folder) / "run", arguments, settings, keeps_files=False)
        issues = run.label_issues()
        _warn(run)
    if return_indices_ranked_by_score:
        return run.material.rows[issues.order[issues.is_label_issue[issues.order]]]
    mask = np.zeros(run.material.num_given, dtype=np.bool_)
    mask[run.material.rows] = issues.is_label_issue
    return mask
