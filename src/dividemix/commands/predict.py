"""dividemix predict: the classes of images or vectors by a trained run, as CSV."""

import argparse
import csv
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from dividemix.commands.out_file import check_out, refuse_to_replace
from dividemix.data.spreadsheet import as_field
from dividemix.errors import InputError, counted
from dividemix.meant import nearest_path
from dividemix.runs.unfinished import is_run, named_run

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dividemix.model.model import Model

    _Prediction = tuple[tuple[str, ...], NDArray[np.float32] | None]

HELP = "predict the classes of images, texts, rows or vectors by a trained run"
EPILOG = """\
SAMPLES are of the kind that the run was trained on:
  images: image files, folders, .csv or .tsv tables with a column path
  texts: .txt files (a text in each line), tables with --text_column
  rows: tables with the same columns; the target is not needed
  vectors: .npy, .npz, .parquet or .arrow files
Each row of the output has path, predicted_label, predicted_prob, and prob_CLASS for each class. For texts, rows and
vectors it also has index, the position in the file. An image that cannot be read has no row and is reported on standard
error. Examples:
  dividemix predict runs/photos new_photos --out predictions.csv
  dividemix predict runs/news more.csv --text_column text --out predictions.csv"""


def add(predict: argparse.ArgumentParser) -> None:
    """Add the flags of predict."""
    predict.add_argument("run", metavar="RUN", type=named_run, help="a run directory, or the model/ in it")
    samples = "files or folders to predict; which ones depends on the run, see below"
    predict.add_argument("samples", metavar="SAMPLES", type=Path, nargs="+", help=samples)
    column = "the column of vectors in a .parquet or .arrow file, if it has several"
    predict.add_argument("--features_column", metavar="NAME", help=column)
    text = "the column of texts in a .csv, .tsv, .jsonl or .parquet file; the lines of a .txt file need none"
    predict.add_argument("--text_column", metavar="NAME", help=text)
    predict.add_argument("--out", metavar="FILE", type=Path, help="the .csv file to write [standard output]")
    predict.add_argument("--overwrite", action="store_true", help="replace the file --out if it exists")
    predict.add_argument("--batch_size", metavar="N", type=int, default=256, help="images at a time [256]")
    predict.add_argument("--device", metavar="NAME", default="auto", help="where to compute [auto]")
    predict.add_argument("--trust_net", action="store_true", help="run the code of the run's own net, if you trust it")
    predict.set_defaults(command=_predict)


def _predict(arguments: argparse.Namespace) -> int:
    out: Path | None = arguments.out
    check_out(out, ".csv")
    refuse_to_replace(out, arguments.samples, overwrite=arguments.overwrite)
    for place in arguments.samples:
        if not place.exists():
            near = nearest_path(place)
            raise InputError(f"{place}: no such file or folder{f': did you mean {near}?' if near else ''}")

    if not is_run(arguments.run) and (runs := [place for place in arguments.samples if is_run(place)]):
        raise InputError(f"{runs[0]} is a run, and comes first: dividemix predict {runs[0]} {arguments.run}")

    from dividemix import atomic
    from dividemix.model.model import Model

    model = Model.from_pretrained(arguments.run, arguments.device, trust_net=arguments.trust_net)
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    known = ("path",) if model.kind == "images" else ("path", "index")
    writer.writerow([*known, "predicted_label", "predicted_prob", *(f"prob_{name}" for name in model.classes)])
    predictions = {"images": _images, "vectors": _vectors, "texts": _texts, "rows": _rows}[model.kind](model, arguments)
    num_predicted, num_skipped, noun = 0, 0, model.kind.removesuffix("s")
    for words, probs in predictions:
        if probs is None:
            num_skipped += 1
            continue
        num_predicted += 1
        best = int(probs.argmax())
        numbers = (f"{prob:.6g}" for prob in (probs[best], *probs))
        writer.writerow([*words, as_field(str(model.classes[best])), *numbers])
    if not num_predicted:
        raise InputError(f"no {noun} to predict ({num_skipped:,} skipped): name files that have {model.kind}")
    content = table.getvalue()
    if out is None:
        sys.stdout.buffer.write(content.encode())  # always UTF-8, as in a file
    else:
        atomic.write_text(out, content)
    where = "" if out is None else f": {out}"
    print(f"dividemix: {counted(num_predicted, noun)} predicted, {num_skipped:,} skipped{where}", file=sys.stderr)
    return 0


def _images(model: "Model", arguments: argparse.Namespace) -> "Iterator[_Prediction]":
    """Each image's name and its probabilities (C,); None if it cannot be read, which is reported."""
    import numpy as np

    from dividemix.model.image_list import list_images
    from dividemix.model.vector_files import VECTOR_FILES

    if other := next((place for place in arguments.samples if place.suffix.lower() in (*VECTOR_FILES, ".txt")), None):
        raise InputError(
            f"{other}: {arguments.run} was trained on images: give image files, folders or tables of paths"
        )
    images = list_images(arguments.samples)
    predictions = model.predict_files([file for _, file in images], batch_size=arguments.batch_size)
    for (name, _), probs in zip(images, predictions, strict=True):
        name = _printed(name)
        if isinstance(probs, np.ndarray):
            yield (as_field(name),), probs
        else:
            print(" ".join(f"dividemix: {name}: {probs}".split()), file=sys.stderr)
            yield (as_field(name),), None


def _vectors(model: "Model", arguments: argparse.Namespace) -> "Iterator[_Prediction]":
    """The file and the index of each vector, and its probabilities (C,)."""
    from dividemix.model.vector_files import read_vectors

    for path in arguments.samples:
        vectors = read_vectors(path, arguments.features_column)
        for index, probs in enumerate(model.predict_proba(vectors, batch_size=arguments.batch_size)):
            yield (as_field(_printed(str(path))), str(index)), probs


def _texts(model: "Model", arguments: argparse.Namespace) -> "Iterator[_Prediction]":
    """The file and the index of each text, and its probabilities (C,); None for a blank text."""
    from dividemix.data.readers.text_rows import texts_of

    for path in arguments.samples:
        texts = texts_of(path, arguments.text_column)
        rows = iter(model.predict_proba([text for text in texts if text.strip()], batch_size=arguments.batch_size))
        for index, text in enumerate(texts):
            yield (as_field(_printed(str(path))), str(index)), next(rows) if text.strip() else None


def _rows(model: "Model", arguments: argparse.Namespace) -> "Iterator[_Prediction]":
    """The file and the index of each row, and its probabilities (C,)."""
    from dividemix.data.readers.column_files import ROW_FILES, read_columns
    from dividemix.data.readers.row_table import rows_like
    from dividemix.model.row_input import RowInput

    assert isinstance(model.takes, RowInput)
    for path in arguments.samples:
        if path.suffix.lower() not in ROW_FILES or path.is_dir():
            names = ", ".join(map(repr, (model.takes.columns.dtype.names or ())[:20]))
            raise InputError(f"{path}: {arguments.run} takes {', '.join(ROW_FILES)} files with the columns {names}")
        rows = rows_like(model.takes.columns.dtype, read_columns(path), str(path))
        for index, probs in enumerate(model.predict_proba(rows, batch_size=arguments.batch_size)):
            yield (as_field(_printed(str(path))), str(index)), probs


def _printed(name: str) -> str:
    """A file name, which may have any bytes, as text."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")
