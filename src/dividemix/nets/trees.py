"""Decision trees as one module: boosted ones, or a forest. A method grows them; what it grew are the module's buffers.

All trees are in one list of nodes. A row starts at each root and goes `depth` steps, to the left if its feature is at
most the threshold. A leaf leads to itself. With T roots, F models of equal weight, and the values v of the leaves:

    forest:   probs = sum of v / T                       boosting:   logits = bias + sum of v / F

These are of the labels as given. They are sharpened: their logarithms get a factor. With a noise matrix
P(given | true), the logits of the true labels follow by EM.
Shapes: N rows, D features, C classes, T trees, M nodes, L leaves.
"""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from dividemix.nets.noise_channel import without_noise

_FLOOR = 1e-6  # of a probability
_VARYING = ("roots", "feature", "threshold", "left", "right", "leaf", "value", "tree_class")


class Trees(nn.Module):
    """Trees, none before they are grown: then the logits are the bias."""

    varying: ClassVar[tuple[str, ...]] = _VARYING  # buffers whose length is that of what was grown
    matrix: Tensor  # (C, C)
    sharpness: Tensor  # (): factor of the log-probabilities; a forest is less sure than it could be
    form: Tensor  # (3,): the depth, the number of models, and whether they are boosted
    roots: Tensor  # (T,): the first node of each tree
    feature: Tensor  # (M,)
    threshold: Tensor  # (M,)
    left: Tensor  # (M,): a node
    right: Tensor  # (M,)
    leaf: Tensor  # (M,): the row of `value`; 0 for other nodes
    value: Tensor  # (L, C), or (L, 1) for boosting: of the class of the tree
    tree_class: Tensor  # (T,)

    def __init__(self, num_classes: int, in_features: int):
        super().__init__()
        self.in_features = in_features
        self.bias = nn.Parameter(torch.zeros(num_classes))
        self.register_buffer("matrix", torch.eye(num_classes))
        self.register_buffer("sharpness", torch.ones(()))
        for name in _VARYING:
            kind = torch.float32 if name in ("threshold", "value") else torch.int32
            self.register_buffer(name, torch.zeros((0, 1) if name == "value" else 0, dtype=kind))
        self.register_buffer("form", torch.zeros(3, dtype=torch.int64))  # depth, models, whether they are boosted
        self._form = (0, 0, 0)

    def grow(self, tensors: dict[str, Tensor]) -> None:
        """Take the trees of a dict with all buffers by name, and `bias`."""
        self.load_state_dict({**self.state_dict(), **tensors})

    def forward(self, vectors: Tensor) -> Tensor:
        """Logits (N, C), which are log-probabilities, of vectors (N, D)."""
        depth, num_models, is_boosted = self._form
        if not num_models:
            return torch.log_softmax(self.bias, dim=0).expand(vectors.shape[0], -1)
        node = self.roots.long().expand(vectors.shape[0], -1)
        for _ in range(depth):
            goes_left = vectors.gather(1, self.feature[node].long()) <= self.threshold[node]
            node = torch.where(goes_left, self.left[node], self.right[node]).long()
        values = self.value[self.leaf[node].long()].float()  # (N, T, C), or (N, T, 1)
        if is_boosted:
            is_own = torch.nn.functional.one_hot(self.tree_class.long(), len(self.bias)).to(values.dtype)
            log_probs = torch.log_softmax(self.bias + values[:, :, 0] @ is_own / num_models, dim=1)
        else:
            log_probs = values.mean(dim=1).clamp(min=_FLOOR).log()
        return without_noise(torch.log_softmax(self.sharpness * log_probs, dim=1), self.matrix)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *arguments: Any) -> None:
        """Give the buffers the lengths of what is loaded. Raises ValueError unless it is a list of trees."""
        found = {name: state_dict[prefix + name] for name in (*_VARYING, "form") if prefix + name in state_dict}
        if len(found) > len(_VARYING):
            _check(found, self.in_features, len(self.bias))
            for name in _VARYING:
                setattr(self, name, torch.empty_like(found[name], device=self.bias.device))
        super()._load_from_state_dict(state_dict, prefix, *arguments)
        depth, num_models, is_boosted = self.form.tolist()
        self._form = (depth, num_models, is_boosted)


def _check(found: dict[str, Tensor], in_features: int, num_classes: int) -> None:
    """Raise ValueError unless no node leads out of the lists, and the values are of the classes."""
    for name, values in found.items():
        kinds = (torch.float16, torch.float32) if name in ("threshold", "value") else (torch.int32, torch.int64)
        if values.ndim != (2 if name == "value" else 1) or values.dtype not in kinds:
            raise ValueError(f"{name} of the trees has another shape or type")
    depth, num_models, is_boosted = found["form"].tolist()
    width = 1 if is_boosted else num_classes
    if num_models and (found["value"].shape[1] != width or not len(found["roots"])):
        raise ValueError("the trees have values of other classes, or there are none")
    num_nodes, num_values, num_trees = len(found["feature"]), len(found["value"]), len(found["roots"])
    limits = {"roots": num_nodes, "left": num_nodes, "right": num_nodes, "leaf": num_values}
    limits |= {"feature": in_features, "tree_class": num_classes}
    lengths = dict.fromkeys(("threshold", "left", "right", "leaf"), num_nodes) | {"tree_class": num_trees}
    for name, limit in limits.items():
        values = found[name]
        if len(values) and not (int(values.min()) >= 0 and int(values.max()) < limit):
            raise ValueError(f"{name} of the trees is out of range")
    for name, length in lengths.items():
        if len(found[name]) != length:
            raise ValueError(f"{name} of the trees has {len(found[name])} entries, not {length}")
    if not 0 <= depth <= 10_000 or num_models < 0 or is_boosted not in (0, 1):
        raise ValueError("the trees are too deep, or of an unknown form")
