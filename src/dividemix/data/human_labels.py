"""CIFAR-10N and CIFAR-100N: labels that people gave to the training images of CIFAR (Wei et al., ICLR 2022).

The official files are pickles inside zip archives, as torch writes them. They are read without running any code.
"""

import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dividemix.data.readers.plain_pickle import read_plain_pickle
from dividemix.data.source import as_labels
from dividemix.errors import InputError, is_refusal, refused

_FILES = {"cifar10": ("CIFAR-10_human.pt", 10), "cifar100": ("CIFAR-100_human.pt", 100)}  # and number of classes
# Data set -> what a specification may ask for -> its name in the file.
VARIANTS = {
    "cifar10": {"aggregate": "aggre_label", "worst": "worse_label"}
    | {f"random{number}": f"random_label{number}" for number in (1, 2, 3)},
    "cifar100": {"noisy_fine": "noisy_label"},
}
_CLEAN = "clean_label"
_LARGEST = 1 << 26  # bytes; the official files have 2.4 million


def human_labels(
    data: str, variant: str, root: Path | None, rows: NDArray[np.int64], true_labels: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The labels that people gave to the training images `rows` (N,) of a data set, with the true labels (N,).

    The file is in `root`, or in its folder `data`. Raises InputError if there are no such labels, the file is missing
    or damaged, or its true labels are not those of the images.
    """
    check_variant(data, variant)
    name, num_classes = _FILES[data]
    path = _find(name, root)
    found = read_plain_pickle(_pickle_in(path), str(path), "file of human labels")
    labels = {}
    for name in (_CLEAN, VARIANTS[data][variant]):
        values = found.get(name)
        if not isinstance(values, np.ndarray) or len(values.shape) != 1 or len(values) <= rows.max():
            raise InputError(f"{path}: {name} is missing or has too few labels: take the official file")
        labels[name] = as_labels(values, f"{path}: {name}", len(values), num_classes)[rows]
    if not np.array_equal(labels[_CLEAN], true_labels):
        raise InputError(f"{path}: its true labels are not those of {data}: the images have another order")
    return labels[VARIANTS[data][variant]]


def _find(name: str, root: Path | None) -> Path:
    folder = Path() if root is None else root if root.is_dir() else root.parent
    for path in (folder / name, folder / "data" / name):
        if path.is_file():
            return path
    raise InputError(f"{folder / name}: no such file: get it from the repository UCSC-REAL/cifar-10-100n, folder data")


def _pickle_in(path: Path) -> bytes:
    """The pickle in a file that torch wrote."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = [member for member in archive.infolist() if member.filename.endswith("/data.pkl")]
            if len(members) != 1 or members[0].file_size > _LARGEST:
                raise InputError(f"{path}: not an official file of human labels: get it again")
            return archive.read(members[0])
    except InputError:
        raise
    except Exception as error:  # zipfile raises many kinds of errors for damaged files
        if is_refusal(error):
            raise refused(path, error) from error
        reason = " ".join(str(error).split())[:150]
        raise InputError(f"{path}: damaged, or not an official file of human labels: {reason}") from error


def check_variant(data: str, variant: str) -> None:
    """Raise InputError unless people gave such labels to the images of the data set."""
    if data not in VARIANTS:
        raise InputError(f"noise human:{variant}: exists for {' and '.join(VARIANTS)} only, not for {data}")
    if variant not in VARIANTS[data]:
        raise InputError(f"noise human:{variant}: for {data} use human:{', human:'.join(VARIANTS[data])}")
