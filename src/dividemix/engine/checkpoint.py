"""Checkpoints: a folder with one safetensors file and one JSON file, never half-written.

The JSON file names its tensor file and is replaced last, in one rename. At that moment the checkpoint changes. A
process that dies earlier leaves the old checkpoint complete; one that dies later leaves the new one. Either leaves at
most a stray file, which the next save removes.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict, cast

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from dividemix import atomic
from dividemix.errors import InputError
from dividemix.stored import MAX_JSON_BYTES, check_shape, digest_of, parse_json, read_bytes

FORMAT = 2
_INDEX = "checkpoint.json"


class _Index(TypedDict):
    """checkpoint.json."""

    format: int
    tensors: str  # the name of the tensor file
    digest: str  # of its content and the facts
    facts: dict[str, Any]


def save_checkpoint(folder: Path, tensors: Mapping[str, Tensor], *, tag: str, facts: Mapping[str, Any]) -> None:
    """Save these tensors and these facts, which JSON can store, in place of the folder's last checkpoint.

    The tensor file is named after the tag and its content, so it never replaces the one that the index still names.
    """
    folder.mkdir(parents=True, exist_ok=True)
    content = safetensors.torch.save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})
    facts = dict(facts)
    digest = digest_of(content, facts)
    tensor_file = folder / f"{tag}-{digest[:8]}.safetensors"
    atomic.write_bytes(tensor_file, content)
    index: _Index = {"format": FORMAT, "tensors": tensor_file.name, "digest": digest, "facts": facts}
    atomic.write_text(folder / _INDEX, json.dumps(index, indent=2) + "\n")
    remove_strays(folder)


def remove_strays(folder: Path) -> None:
    """Remove the files that a process left when it died during a save."""
    if not (folder / _INDEX).is_file():
        return
    kept = _read_index(folder)["tensors"]
    if not (folder / kept).is_file():  # a damaged index must not cost the tensors as well
        return
    atomic.remove_strays(folder)
    for stray in folder.glob("epoch-*.safetensors"):
        if stray.name != kept:
            stray.unlink()


def load_checkpoint(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and the facts of the folder's checkpoint; InputError if there is none, or it is damaged."""
    for _ in range(3):  # a training that is saving may replace the file that the index named
        index = _read_index(folder)
        try:
            content = (folder / index["tensors"]).read_bytes()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise InputError(f"{folder / index['tensors']}: cannot be read: {error.strerror or error}") from error
        if digest_of(content, index["facts"]) != index["digest"]:
            raise _damaged(folder, "its content is not what was saved")
        try:
            return safetensors.torch.load(content), index["facts"]
        except SafetensorError as error:
            raise _damaged(folder, error) from error
    raise InputError(f"{folder}: no checkpoint here: {index['tensors']} is missing")


def read_facts(folder: Path) -> dict[str, Any]:
    """The facts of the folder's checkpoint, without its tensors; InputError if there is none, or it is damaged."""
    return _read_index(folder)["facts"]


def _read_index(folder: Path) -> _Index:
    """checkpoint.json, whose format is checked."""
    path = folder / _INDEX
    if not path.is_file():
        raise InputError(f"{folder}: no checkpoint here: {_INDEX} is missing")
    content = read_bytes(path, MAX_JSON_BYTES)
    try:
        values = parse_json(content, dict[str, Any], str(path))
        is_ours = values.get("format") == FORMAT
        check_shape(values, _Index if is_ours else Any)
    except ValueError as error:
        raise _damaged(folder, error) from error
    if not is_ours:
        raise InputError(f"{path}: written by another version of dividemix")
    index = cast(_Index, values)
    if not re.fullmatch(r"\w[\w.-]*", index["tensors"]):  # the name of a file, and neither a path nor half a character
        raise _damaged(folder, f"{_INDEX} names a file outside of it")
    return index


def _damaged(folder: Path, reason: object) -> InputError:
    return InputError(f"{folder}: the checkpoint is damaged ({reason})")
