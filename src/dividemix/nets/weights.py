"""Load pretrained weights, such as ImageNet's, into a net; never a pickle that could run code."""

import pickle
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from dividemix.errors import InputError

_WRAPPERS = ("state_dict", "model", "model_state_dict")  # where training scripts put the weights in a larger file
_COUNTER = "num_batches_tracked"  # of BatchNorm; old files have none, and with a fixed momentum nothing depends on it


@dataclass(frozen=True, kw_only=True)
class WeightsReport:
    """How a file's tensors were used, and what became of the net's head; str() is one line for the user."""

    path: Path
    matched: int  # tensors that the net took from the file
    head: str  # the name of the net's head; empty if it has none
    head_replaced: bool  # whether the head keeps its initial weights: the file's has other classes or is missing
    ignored: tuple[str, ...]  # the file's tensors that the net did not take: another head, names without the prefix
    prefix: str  # what precedes every name of the net in the file

    def __str__(self) -> str:
        under = f" under {self.prefix!r}" if self.prefix else ""
        head = f"; the head {self.head!r} is new" if self.head_replaced else ""
        ignored = f"; {_some(self.ignored)} not used" if self.ignored else ""
        return f"{self.path}: {self.matched} tensors matched{under}{head}{ignored}"


def load_weights(net: nn.Module, path: Path) -> WeightsReport:
    """Put the weights of a .safetensors or torch file into net, by name, and report what matched.

    The file's names may share a prefix. The head, the net's last nn.Linear, keeps its weights if the file's has another
    shape or name or is missing; all other tensors must be in the file, in the same shape. Raises InputError if the file
    cannot be read or does not fit; the net is then unchanged.
    """
    return take_weights(net, read_weights(path), path)


def take_weights(net: nn.Module, stored: Mapping[str, Tensor], path: Path) -> WeightsReport:
    """Put named tensors into net, as `load_weights`; `path` is where they come from, for messages."""
    head, head_inputs = find_head(net)
    body, own_head = _split(net.state_dict(), head)
    needed = [name for name in body if not name.endswith(_COUNTER)]
    prefix = _find_prefix(stored, set(needed), path)
    found = {name.removeprefix(prefix): tensor for name, tensor in stored.items() if name.startswith(prefix)}
    found_body, found_head = _split(found, head)
    head_fits = _shapes(found_head) == _shapes(own_head)
    if not head_fits:
        for foreign_head in _linear_layers(found_body.keys() - body.keys(), found_body, head_inputs):
            found_body, _ = _split(found_body, foreign_head)

    taken = {name: tensor for name, tensor in found_body.items() if name in body}
    problems = {
        "lacks": [name for name in needed if name not in taken],
        "has beyond the net": [name for name in found_body if name not in body and not name.endswith(_COUNTER)],
        "has in another shape": [
            f"{name} {_size(tensor)} where the net has {_size(body[name])}"
            for name, tensor in taken.items()
            if tensor.shape != body[name].shape
        ],
    }
    if any(problems.values()):
        differences = ", ".join(f"{verb} {_some(names)}" for verb, names in problems.items() if names)
        raise InputError(
            f"weights {path} do not fit the net {type(net).__name__}: the file {differences};"
            " give weights of the same architecture and number of input channels"
        )
    if head_fits:
        taken |= found_head
    net.load_state_dict(taken, strict=False)
    used = {prefix + name for name in taken}
    ignored = tuple(name for name in stored if name not in used)
    return WeightsReport(
        path=path, matched=len(taken), head=head, head_replaced=not head_fits, ignored=ignored, prefix=prefix
    )


def read_weights(path: Path) -> dict[str, Tensor]:
    """The named tensors of a file, unwrapped from the dictionary that training scripts save."""
    try:
        if path.suffix == ".safetensors":
            content: object = safetensors.torch.load_file(path)
        else:
            content = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise InputError(f"cannot read weights {path}: {error.strerror or error}") from error
    except pickle.UnpicklingError as error:
        raise InputError(
            f"weights {path} are damaged or hold Python objects besides tensors, which are never loaded:"
            " save the state_dict alone, with torch.save or as .safetensors"
        ) from error
    except Exception as error:  # torch's reader raises many types for damaged bytes
        kind = "a safetensors file" if isinstance(error, SafetensorError) else "a torch file"
        raise InputError(f"weights {path} are damaged or not {kind} (.safetensors, .pth or .pt)") from error
    for wrapper in _WRAPPERS:
        if isinstance(content, Mapping) and isinstance(content.get(wrapper), Mapping):
            content = content[wrapper]
    if not isinstance(content, Mapping):
        raise InputError(f"weights {path} hold one {type(content).__name__} and no named tensors: save a state_dict")
    return {name: value for name, value in content.items() if isinstance(name, str) and isinstance(value, Tensor)}


def find_head(net: nn.Module) -> tuple[str, int]:
    """The name of the net's last linear layer and the number of its inputs; an empty name if there is none."""
    linear = [(name, module.in_features) for name, module in net.named_modules() if isinstance(module, nn.Linear)]
    return linear[-1] if linear else ("", 0)


def has_trainable_head(net: nn.Module) -> bool:
    """Whether the net has a last linear layer that may be trained: not one that the net itself has frozen."""
    name, _ = find_head(net)
    return bool(name) and any(weight.requires_grad for weight in net.get_submodule(name).parameters())


def _find_prefix(stored: Mapping[str, Tensor], needed: set[str], path: Path) -> str:
    """The prefix without which most of the file's names are names that the net needs."""
    counts = Counter[str]()
    for name in stored:
        parts = name.split(".")
        for i in range(len(parts)):
            if ".".join(parts[i:]) in needed:
                counts[".".join([*parts[:i], ""])] += 1
    if not counts:
        raise InputError(
            f"weights {path} have no tensor named as in the net: the file has {_some(list(stored))};"
            " give weights of the same architecture"
        )
    best = max(counts.values())
    prefixes = [prefix for prefix, count in counts.items() if count == best]
    if len(prefixes) > 1 and best == len(needed):
        raise InputError(
            f"weights {path} fit the net more than once, under {' and '.join(map(repr, prefixes))}: keep one of them"
        )
    return min(prefixes, key=len)


def _linear_layers(names: Iterable[str], tensors: Mapping[str, Tensor], num_inputs: int) -> list[str]:
    """The modules among these names whose weight is a matrix of num_inputs columns: a head of another name."""
    return [
        name.removesuffix(".weight")
        for name in names
        if name.endswith(".weight") and tensors[name].ndim == 2 and tensors[name].shape[1] == num_inputs
    ]


def _split(tensors: Mapping[str, Tensor], module: str) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The tensors outside of a module, and those of the module; an empty module name has none."""
    inside = {name: tensor for name, tensor in tensors.items() if module and name.startswith(f"{module}.")}
    return {name: tensor for name, tensor in tensors.items() if name not in inside}, inside


def _shapes(tensors: Mapping[str, Tensor]) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in tensors.items()}


def _size(tensor: Tensor) -> str:
    return " x ".join(map(str, tensor.shape)) or "one number"


def _some(names: Sequence[str]) -> str:
    """The number of names, and the first three."""
    shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
    return f"{len(names)} ({shown})" if names else "none"
