"""Read decisions from any file that has some: corrections of the report, or an export of another tool."""

from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from dividemix.errors import InputError
from dividemix.relabel.corrections import Correction, read_corrections
from dividemix.relabel.decision_table import read_decision_table
from dividemix.relabel.hugging_face import is_saved_to_disk, read_dataset
from dividemix.relabel.tools import TOOLS, listed
from dividemix.stored import MAX_BYTES, parse_json, read_bytes


def _known() -> str:
    """What can be given, in words."""
    titles: dict[str, list[str]] = {}
    for tool in TOOLS.values():
        if tool.export:
            titles.setdefault(tool.extension, []).append(tool.title)
    exports = [f"the {extension} export of {listed(names, 'or')}" for extension, names in titles.items()]
    tables = "a .csv or .parquet table with a column corrected_label"
    return listed(("corrections.csv of the report", tables, *exports), "or")


def read_decisions(file: Path) -> list[Correction]:
    """The decisions in a file, whose kind is recognised by its content.

    Raises:
        InputError: if the kind is unknown, or the file is damaged.
    """
    if not file.exists():
        raise InputError(f"{file}: no such file: is it in the browser's download folder? Give {_known()}")
    suffix = file.suffix.lower()
    if file.is_dir() and not is_saved_to_disk(file):
        raise InputError(f"{file}: is a folder without decisions: give {_known()}")
    if file.is_dir() or suffix == ".parquet":
        return read_dataset(file)
    modules = [tool.export for tool in TOOLS.values() if tool.export and tool.extension == suffix]
    if modules:
        return _of_export(file, suffix, modules)
    decided = read_decision_table(file)
    return read_corrections(file) if decided is None else decided


def _of_export(file: Path, suffix: str, modules: list[str]) -> list[Correction]:
    """The decisions in an export, by the first module that recognises its content."""
    content: Any = read_bytes(file, MAX_BYTES)
    if suffix == ".json":
        content = parse_json(content, Any, str(file))
    for module in map(resolve_name, modules):
        if module.is_export(content):
            decided: list[Correction] = module.decisions(file, content)
            return decided
    raise InputError(f"{file}: has no decisions that can be recognised: give {_known()}")
