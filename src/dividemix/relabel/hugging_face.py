"""Hugging Face `datasets`: a Parquet file with images and a column corrected_label out; Parquet or save_to_disk in.

Both are read and written by pyarrow (an extra); `datasets` itself is not needed.
"""

import importlib
import io
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TypedDict

from dividemix.data.crop import Crop
from dividemix.data.images import ImageLike, UnreadableImage, cropped
from dividemix.data.readers.parquet import class_name, features_of
from dividemix.errors import InputError, is_refusal
from dividemix.relabel.corrections import Correction
from dividemix.relabel.decision_table import CORRECTED, OTHER, decisions_of_rows
from dividemix.relabel.returned import REMEDY
from dividemix.relabel.shared import Content, Shared
from dividemix.stored import parse_json, read_bytes

_ROWS_AT_A_TIME = 500
_MAX_BYTES = 1 << 20


def write_dataset(shared: Shared, _image_url: str | None) -> dict[str, Content]:
    """The Parquet file in the order of the data; without the column image, if the data has no image files."""
    _pyarrow()
    return {".parquet": partial(_write, shared)}


def _write(shared: Shared, file: BinaryIO) -> None:
    """Write the Parquet file, some rows at a time."""
    arrow, parquet = _pyarrow()
    number = {name: position for position, name in enumerate(shared.classes)}
    issues = sorted(shared.issues, key=lambda one: one.index)
    has_images = all(one.index in shared.images for one in issues)
    class_label = {"names": list(shared.classes), "_type": "ClassLabel"}
    columns: dict[str, tuple[Any, dict[str, Any]]] = {
        **(
            {"image": (arrow.struct({"bytes": arrow.binary(), "path": arrow.string()}), {"_type": "Image"})}
            if has_images
            else {}
        ),
        "index": (arrow.int64(), {"dtype": "int64", "_type": "Value"}),
        "path": (arrow.string(), {"dtype": "string", "_type": "Value"}),
        "label": (arrow.int64(), class_label),
        "suggested_label": (arrow.int64(), class_label),
        "suggested_prob": (arrow.float64(), {"dtype": "float64", "_type": "Value"}),
        "label_score": (arrow.float64(), {"dtype": "float64", "_type": "Value"}),
        "is_label_issue": (arrow.bool_(), {"dtype": "bool", "_type": "Value"}),
        CORRECTED: (arrow.int64(), class_label),
        OTHER: (arrow.string(), {"dtype": "string", "_type": "Value"}),
    }
    layout = {"info": {"features": {name: feature for name, (_, feature) in columns.items()}}}
    fields = [arrow.field(name, kind) for name, (kind, _) in columns.items()]
    schema = arrow.schema(fields, metadata={"huggingface": json.dumps(layout)})
    with parquet.ParquetWriter(file, schema) as writer:
        for start in range(0, len(issues), _ROWS_AT_A_TIME):
            rows = [
                {
                    **({"image": _image(shared.images[one.index], one.path)} if has_images else {}),
                    "index": one.index,
                    "path": one.path,
                    "label": number[one.given_label],
                    "suggested_label": number[one.predicted_label],
                    "suggested_prob": one.predicted_prob,
                    "label_score": one.label_score,
                    "is_label_issue": one.is_label_issue,
                    CORRECTED: None,
                    OTHER: None,
                }
                for one in issues[start : start + _ROWS_AT_A_TIME]
            ]
            writer.write_table(arrow.Table.from_pylist(rows, schema=schema))


def _image(image: ImageLike, path: str) -> dict[str, Any]:
    """An image as the layout stores it. Raises InputError if its file cannot be read."""
    if isinstance(image, Crop):
        content = io.BytesIO()
        try:
            cropped(image, "RGB").save(content, "PNG")
        except UnreadableImage as error:
            raise InputError(f"{image.path}: {error}") from error
        return {"bytes": content.getvalue(), "path": path}
    if not isinstance(image, Path):
        assert isinstance(image, bytes)
        return {"bytes": image, "path": path}
    try:
        return {"bytes": image.read_bytes(), "path": path}
    except OSError as error:
        raise InputError(f"{image}: cannot be read: {error.strerror or error}") from error


def is_saved_to_disk(folder: Path) -> bool:
    """Whether a folder was written by `Dataset.save_to_disk`."""
    return (folder / "state.json").is_file() and (folder / "dataset_info.json").is_file()


def read_dataset(file: Path) -> list[Correction]:
    """The decisions of a Parquet file, or of a folder that `save_to_disk` wrote: the column corrected_label.

    Raises:
        InputError: if it is damaged, or not an edited copy of what was shared.
    """
    arrow, parquet = _pyarrow()
    try:
        parts = list(_parts(file, arrow)) if file.is_dir() else [parquet.ParquetFile(file)]
        schema = parts[0].schema if file.is_dir() else parts[0].schema_arrow
        needed = ["index", "path", "label", CORRECTED]
        for name in needed:
            if name not in schema.names:
                raise InputError(f"{file}: no column {name!r}: {REMEDY}")
        names = needed + [name for name in ("suggested_label", OTHER) if name in schema.names]
        tables = [part.select(names) if file.is_dir() else part.read(columns=names) for part in parts]
        rows = [row for table in tables for row in table.to_pylist()]
    except InputError:
        raise
    except Exception as error:  # pyarrow raises many kinds of errors for damaged files
        if isinstance(error, OSError) and is_refusal(error):
            raise InputError(f"{file}: cannot be read: {error.strerror or error}") from error
        words = " ".join(str(error).split())[:200]
        raise InputError(f"{file}: damaged, or not a data set: {words or type(error).__name__}") from error
    return decisions_of_rows(_rows(file, rows, features_of(schema.metadata)))


def _rows(file: Path, rows: list[dict[str, Any]], features: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows with class names instead of numbers."""
    for number, row in enumerate(rows):
        where, known = f"{file}: row {number}", dict(row)
        for name in ("label", "suggested_label", CORRECTED):
            value, classes = row.get(name), features.get(name, {}).get("names")
            is_undecided = value is None or (name == CORRECTED and value == -1)  # -1: how ClassLabel says "none"
            known[name] = None if is_undecided else class_name(value, classes)
            if known[name] is None and not is_undecided:
                raise InputError(f"{where}: {name} is {str(value)[:50]!r}: not one of the classes")
        yield where, known | {"given_label": known["label"]}


class _File(TypedDict):
    filename: str


def _parts(folder: Path, arrow: Any) -> Iterator[Any]:
    """The tables of a folder that `save_to_disk` wrote."""
    state = parse_json(read_bytes(folder / "state.json", _MAX_BYTES), dict[str, Any], str(folder / "state.json"))
    files = parse_json(json.dumps(state.get("_data_files")).encode(), list[_File], str(folder / "state.json"))
    if not files:
        raise InputError(f"{folder}: has no rows: {REMEDY}")
    ipc = importlib.import_module("pyarrow.ipc")
    for one in files:
        name = one["filename"]
        if Path(name).name != name:
            raise InputError(f"{folder / 'state.json'}: damaged (file {name[:100]!r} is not in the folder)")
        with arrow.memory_map(str(folder / name)) as mapped, ipc.open_stream(mapped) as stream:
            yield stream.read_all()


def _pyarrow() -> tuple[Any, Any]:
    try:
        return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except Exception as error:
        raise InputError("Hugging Face data sets need pyarrow: pip install 'dividemix[parquet]'") from error
