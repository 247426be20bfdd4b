"""The classes of a finished run, from the description of its model. No torch import."""

from pathlib import Path
from typing import Any

from dividemix.errors import InputError
from dividemix.stored import digest_of_file, read_json


def run_classes(run: Path) -> tuple[str, ...]:
    """The names of the classes. Raises InputError unless the model is what the run wrote, and names two or more."""
    file = run / "model" / "config.json"
    described = read_json(file, dict[str, Any])
    names, digest = described.get("classes"), described.pop("digest", None)
    if digest is not None and digest != digest_of_file(run / "model" / "model.safetensors", described):
        raise InputError(f"{run / 'model'}: not what was written: dividemix resume {run} writes it again")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names) or len(names) < 2:
        raise InputError(f"{file}: damaged (it does not name the classes)")
    return tuple(names)
