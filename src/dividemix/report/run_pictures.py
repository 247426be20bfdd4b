"""The pictures of a finished run, found by its settings and read when one is asked for. No torch import."""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dividemix.data.builtin import BUILT_IN
from dividemix.data.originals import originals
from dividemix.data.readers import read_source
from dividemix.errors import InputError, is_refusal
from dividemix.planning.job import read_settings
from dividemix.report.content import PageContent
from dividemix.report.pictures import Pictures, matched


def run_pictures(run: Path, content: PageContent, data: str | None = None) -> Pictures:
    """The pictures of the samples of a run, from the data that it was trained on, or from `data`, where that is now.

    Raises:
        InputError: if the data is not there, or its samples are no longer those of the run.
    """
    settings = read_settings(run / "config.yaml", of_run=True)
    settings["data"] = data or str(run / "data.npz" if (run / "data.npz").is_file() else settings["data"])
    name = str(settings["data"])
    if name not in BUILT_IN and not Path(name).exists():
        raise InputError(f"{name}: no such file or folder: start in the folder where it was trained, or give data")
    try:
        found = originals(settings)
    except InputError as error:
        raise InputError(f"{error}; if the data is elsewhere now, give data") from error
    files = matched(found, content.sample_rows, content.paths)
    if found is not None and len(files) < len(content.labels):
        missing = next(i for i in range(len(content.labels)) if i not in files)
        sample = repr(content.paths[missing][:200]) if content.paths else f"sample {content.sample_rows[missing]}"
        raise InputError(f"{name}: {sample} is not where it was when the run was trained: give the right data")
    arrays = cache(lambda: {} if found is not None else _arrays(settings))
    return Pictures(files, lambda i: arrays().get(int(content.sample_rows[i])))


def _arrays(settings: Mapping[str, Any]) -> Mapping[int, NDArray[np.uint8]]:
    """Row -> image (H, W, K), for data whose images are arrays; empty for other data, such as vectors."""
    root = settings.get("root")
    try:
        source = read_source(str(settings["data"]), None if root is None else Path(root))
    except InputError as error:
        if is_refusal(error.__cause__):
            raise
        return {}
    images = source.train_samples
    return _Rows(images, source.rows) if isinstance(images, np.ndarray) and images.ndim == 4 else {}


class _Rows(Mapping[int, NDArray[np.uint8]]):
    """Images (N, H, W, K) by their row in the data as given (N,)."""

    def __init__(self, images: NDArray[np.uint8], rows: NDArray[np.int64]):
        self._images, self._place = images, {row: i for i, row in enumerate(rows.tolist())}

    def __getitem__(self, row: int) -> NDArray[np.uint8]:
        image: NDArray[np.uint8] = self._images[self._place[row]]
        return image

    def __iter__(self) -> Iterator[int]:
        return iter(self._place)

    def __len__(self) -> int:
        return len(self._place)
