"""Checkpoints: a folder with one safetensors file and one JSON file, never half-written.

The JSON names the tensor file it belongs to and is replaced last, in one rename: that is the moment a checkpoint
changes. A process that dies at any other moment leaves the old checkpoint whole, and at most a stray file that the
next save removes.
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
    """Make folder hold these tensors and these JSON-able facts in place of what it held.

    The tensor file is named by the tag and its content, so that it never replaces one that the index still names.
    """
    folder.mkdir(parents=True, exist_ok=True)
    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    content = safetensors.torch.save(contiguous)
    tensor_file = folder / f"{tag}-{hashlib.blake2b(content, digest_size=4).hexdigest()}.safetensors"
    atomic.write_bytes(tensor_file, content)
    index = {"format": FORMAT, "tensors": tensor_file.name, **facts}
    atomic.write_text(folder / _INDEX, json.dumps(index, indent=2) + "\n")
    remove_strays(folder)


def remove_strays(folder: Path) -> None:
    """Remove what a process that died in a save has left beside the checkpoint."""
    if not (folder / _INDEX).is_file():
        return
    kept = _read_index(folder)["tensors"]
    for stray in (*folder.glob("epoch-*.safetensors"), *folder.glob(".*.tmp")):
        if stray.name != kept:
            stray.unlink()


def load_checkpoint(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and the facts that the folder holds.

    Raises:
        InputError: if there is no checkpoint, or it is damaged.
    """
    index = _read_index(folder)
    for _ in range(3):  # a training that saves just now replaces the file that the index named
        try:
            tensors = safetensors.torch.load((folder / index["tensors"]).read_bytes())
        except FileNotFoundError:
            index = _read_index(folder)
        except (SafetensorError, OSError) as error:
            raise _damaged(folder, error) from error
        else:
            del index["tensors"]
            return tensors, index
    raise InputError(f"{folder}: no checkpoint here: {index['tensors']} is missing")


def read_facts(folder: Path) -> dict[str, Any]:
    """The facts alone.

    Raises:
        InputError: if there is no checkpoint, or it is damaged.
    """
    index = _read_index(folder)
    del index["tensors"]
    return index


def _read_index(folder: Path) -> dict[str, Any]:
    """What checkpoint.json says, its format checked and taken off."""
    index_file = folder / _INDEX
    try:
        index = json.loads(index_file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InputError(f"{folder}: no checkpoint here: {_INDEX} is missing") from error
    except (OSError, ValueError) as error:
        raise _damaged(folder, error) from error
    if not isinstance(index, dict):
        raise _damaged(folder, f"{_INDEX} is no object")
    if index.pop("format", None) != FORMAT:
        raise InputError(f"{index_file}: written by another version of dividemix")
    if not isinstance(index.get("tensors"), str):
        raise _damaged(folder, f"{_INDEX} names no tensor file")
    return index


def _damaged(folder: Path, reason: object) -> InputError:
    return InputError(f"{folder}: the checkpoint is damaged ({reason})")
