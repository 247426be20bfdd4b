"""The part of many vectors on which choices are made: their cost then does not grow with the data.

Regularisation, and whether to use the noise matrix, need far fewer samples than the heads do. So they are chosen on a
part of the samples. At the end the heads learn from all.
"""

import torch

from dividemix.data.features import FeatureData
from dividemix.engine.state import State
from dividemix.methods.fitted_matrix import fitted
from dividemix.methods.fold_heads import Folded, out_of_sample, train_heads
from dividemix.methods.linear_head import set_head

_LEAST = 50_000  # samples of a part
_OF_A_CLASS = 200  # samples of a part, on the mean
_ROUNDS = 3  # of learning from all: better heads give a better noise matrix, and it gives better heads


def part_of(data: FeatureData, num_classes: int, seed: int) -> FeatureData:
    """A part of the samples, drawn with the seed: data have an order. All, if they are not many."""
    number, size = len(data.labels), max(_LEAST, _OF_A_CLASS * num_classes)
    if number <= size:
        return data
    order = torch.randperm(number, generator=torch.Generator().manual_seed(seed - 1))
    return data.subset(order[:size].sort().values.numpy())


def learn_from_all(state: State, part: Folded, data: Folded, num_steps: int) -> None:
    """Train the heads that were chosen on a part on all samples, through the noise matrix if it is used.

    Regularisation belongs to the mean loss, so with more samples it is smaller: all samples together say more, and what
    is known before them stays the same.
    """
    heads, matrix = state.buffers["heads"], state.buffers["matrix"]
    lam = state.buffers["path"][0].item() * len(part.labels) / len(data.labels)
    if is_refused(state):
        heads = train_heads(heads, data, lam, torch.eye(len(matrix), device=matrix.device), num_steps)
        state.buffers["best_heads"] = heads.clone()
    else:
        for _ in range(_ROUNDS):
            heads = train_heads(heads, data, lam, matrix, num_steps)
            fit = fitted(out_of_sample(heads, part), part.labels, matrix)
            matrix = fit.matrix
        heads, state.buffers["matrix"] = fit.sharpness * heads, matrix
    state.buffers["heads"] = heads
    set_head(state, heads)


def is_refused(state: State) -> bool:
    """Whether the heads that learned without a noise matrix were kept."""
    return torch.equal(state.buffers["heads"], state.buffers["best_heads"])
