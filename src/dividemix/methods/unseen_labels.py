"""How heads explain given labels that they did not see, with or without a noise matrix; which of two does it better."""

from typing import NamedTuple

import torch
from torch import Tensor

from dividemix.methods.fitted_matrix import log_likelihoods
from dividemix.methods.fold_heads import Folded, out_of_sample


class Explained(NamedTuple):
    """How heads explain N given labels that they did not see."""

    likelihoods: Tensor  # (N,): their logarithms
    agreed: Tensor  # (N,): 1 if the heads predict the given label, else 0
    right: float  # the estimated share of right labels


def explained(heads: Tensor, data: Folded, matrix: Tensor) -> Explained:
    """How heads explain labels that they did not see, through the noise matrix (C, C)."""
    log_probs = out_of_sample(heads, data)
    likelihoods, agreed = torch.empty(2, len(log_probs), dtype=torch.float64, device=log_probs.device)
    right = 0.0
    for rows in data.blocks(log_probs.shape[1]):
        block, labels = log_probs[rows], data.labels[rows]
        each = log_likelihoods(block, labels, matrix)
        own = block.gather(1, labels[:, None])[:, 0] + matrix.diagonal().log()[labels]
        likelihoods[rows], agreed[rows] = each.double(), (block.argmax(dim=1) == labels).double()
        right += (own - each).exp().double().sum().item()
    return Explained(likelihoods, agreed, right / len(data.labels))


def is_better(new: Explained, old: Explained) -> bool:
    """Whether the new way is clearly better, and predicts no smaller share of the given labels.

    Both count: if the noise is of a kind that no matrix describes, labels may become likelier through a matrix while
    predictions get worse. Differences are compared with their standard errors: three are clear, one is chance. So with
    a hundred samples the old way mostly stays.
    """
    agreed, likelier = (
        gain.mean().item() / max(gain.std(correction=0).item() / len(gain) ** 0.5, 1e-12)
        for gain in (new.agreed - old.agreed, new.likelihoods - old.likelihoods)
    )
    return bool(agreed > -1 and max(agreed, likelier) > 3)
