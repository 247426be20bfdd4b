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
    index_file = folder / _INDEX
    if index_file.is_file():
        kept = (_INDEX, json.loads(index_file.read_text())["tensors"])
        for other in folder.iterdir():
            if other.name not in kept:
                other.unlink()


def load_checkpoint(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and the facts that the folder holds.

    Raises:
        InputError: if there is no checkpoint, or it is damaged.
    """
    index_file = folder / _INDEX
    try:
        index = json.loads(index_file.read_text())
        if index.pop("format", None) != FORMAT:
            raise InputError(f"{index_file}: written by another version of dividemix; start again with --overwrite")
        tensors = safetensors.torch.load((folder / index.pop("tensors")).read_bytes())
    except FileNotFoundError as error:
        raise InputError(f"{folder}: no checkpoint here: {Path(error.filename).name} is missing") from error
    except InputError:
        raise
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{folder}: the checkpoint is damaged ({error}); start again with --overwrite") from error
    return tensors, index
