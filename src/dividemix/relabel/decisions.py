"""Read decisions from any file that has some: corrections of the report, or an export of another tool."""

from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from dividemix.errors import InputError
from dividemix.relabel.corrections import Correction, read_corrections
from dividemix.relabel.decision_table import read_decision_table
from dividemix.relabel.hugging_face import is_saved_to_disk, read_dataset
from dividemix.relabel.tools import TOOLS, WITH_JSON, listed
from dividemix.stored import MAX_BYTES, parse_json, read_bytes

_KNOWN = (
    "corrections.csv of the report, a .csv or .parquet table with a column corrected_label,"
    f" or the JSON export of {listed(WITH_JSON, 'or')}"
)


def read_decisions(file: Path) -> list[Correction]:
    """The decisions in a file, whose kind is recognised by its content.

    Raises:
        InputError: if the kind is unknown, or the file is damaged.
    """
    if not file.exists():
        raise InputError(f"{file}: no such file: is it in the browser's download folder? Give {_KNOWN}")
    suffix = file.suffix.lower()
    if file.is_dir() and not is_saved_to_disk(file):
        raise InputError(f"{file}: is a folder without decisions: give {_KNOWN}")
    if file.is_dir() or suffix == ".parquet":
        return read_dataset(file)
    if suffix == ".json":
        return _of_json(file)
    decided = read_decision_table(file)
    return read_corrections(file) if decided is None else decided


def _of_json(file: Path) -> list[Correction]:
    content: Any = parse_json(read_bytes(file, MAX_BYTES), Any, str(file))
    for reference in filter(None, (tool.json for tool in TOOLS.values())):
        module = resolve_name(reference)
        if module.is_export(content):
            decided: list[Correction] = module.decisions(file, content)
            return decided
    raise InputError(f"{file}: has no decisions that can be recognised: give {_KNOWN}")
