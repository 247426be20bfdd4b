"""The copy of the data that the run of a Python program has, if its samples are texts or rows. No torch import."""

from pathlib import Path
from typing import Any

from dividemix.data.readers.npz import read_npz
from dividemix.data.source import Kind, Source
from dividemix.stored import read_json


def own_copy(run: Path, kind: Kind) -> Source | None:
    """The samples of a finished run from its own copy; None if it has none, or its samples are of another kind."""
    file = run / "data.npz"
    if not file.is_file() or read_json(run / "model" / "config.json", dict[str, Any]).get("kind") != kind:
        return None
    return read_npz(file)
