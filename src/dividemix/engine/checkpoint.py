"""Checkpoints: a folder with one safetensors file and one JSON file, never half-written.

The JSON file names its tensor file and is replaced last, in one rename. At that moment the checkpoint changes. A
process that dies earlier leaves the old checkpoint complete; one that dies later leaves the new one. Either leaves at
most a stray file, which the next save removes.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from dividemix import atomic
from dividemix.errors import InputError

FORMAT = 1
_INDEX = "checkpoint.json"


def save_checkpoint(folder: Path, tensors: Mapping[str, Tensor], *, tag: str, facts: Mapping[str, Any]) -> None:
    """Save these tensors and these facts, which JSON can store, in place of the folder's last checkpoint.

    The tensor file is named after the tag and its content, so it never replaces the one that the index still names.
    """
    folder.mkdir(parents=True, exist_ok=True)
    content = safetensors.torch.save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})
    tensor_file = folder / f"{tag}-{hashlib.blake2b(content, digest_size=4).hexdigest()}.safetensors"
    atomic.write_bytes(tensor_file, content)
    index = {"format": FORMAT, "tensors": tensor_file.name, **facts}
    atomic.write_text(folder / _INDEX, json.dumps(index, indent=2) + "\n")
    remove_strays(folder)


def remove_strays(folder: Path) -> None:
    """Remove the files that a process left when it died during a save."""
    if not (folder / _INDEX).is_file():
        return
    kept, _ = _read_index(folder)
    for stray in (*folder.glob("epoch-*.safetensors"), *folder.glob(".*.tmp")):
        if stray.name != kept:
            stray.unlink()


def load_checkpoint(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and the facts of the folder's checkpoint; InputError if there is none, or it is damaged."""
    for _ in range(3):  # a training that is saving may replace the file that the index named
        tensor_file, facts = _read_index(folder)
        try:
            return safetensors.torch.load((folder / tensor_file).read_bytes()), facts
        except FileNotFoundError:
            continue
        except (SafetensorError, OSError) as error:
            raise _damaged(folder, error) from error
    raise InputError(f"{folder}: no checkpoint here: {tensor_file} is missing")


def read_facts(folder: Path) -> dict[str, Any]:
    """The facts of the folder's checkpoint, without its tensors; InputError if there is none, or it is damaged."""
    return _read_index(folder)[1]


def _read_index(folder: Path) -> tuple[str, dict[str, Any]]:
    """The name of the tensor file, and the facts, from checkpoint.json, whose format is checked."""
    index_file = folder / _INDEX
    try:
        index = json.loads(index_file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InputError(f"{folder}: no checkpoint here: {_INDEX} is missing") from error
    except (OSError, ValueError) as error:
        raise _damaged(folder, error) from error
    if not isinstance(index, dict):
        raise _damaged(folder, f"{_INDEX} is not an object")
    if index.pop("format", None) != FORMAT:
        raise InputError(f"{index_file}: written by another version of dividemix")
    if not isinstance(index.get("tensors"), str):
        raise _damaged(folder, f"{_INDEX} names no tensor file")
    return index.pop("tensors"), index


def _damaged(folder: Path, reason: object) -> InputError:
    return InputError(f"{folder}: the checkpoint is damaged ({reason})")
