"""Linear heads, one for each fold of the samples, all trained at once; each sees all samples but those of its fold.

The loss of a head is that of the *given* labels through the noise matrix T, so that the head itself predicts the *true*
ones: -log sum_c p(c | x) T[c, given], plus lam / 2 times the squared weights.

Shapes: N samples with D features, C classes, F folds. Heads are (F, D + 1, C); the last row is the bias.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from dividemix.methods.lbfgs import minimise

_CACHED = 2**18  # numbers of one kind that stay in a processor's cache while they are computed with


@dataclass(frozen=True)
class Folded:
    """Features (N, D), their given labels (N,), the fold of each sample (N,), and the axes that make training fast."""

    features: Tensor
    labels: Tensor
    folds: Tensor
    num_folds: int
    axes: Tensor  # (D, D), or (D, 0) for none: the principal axes
    spread: Tensor  # (D,): the mean square of the features along the axes

    def blocks(self, num_classes: int) -> Iterator[slice]:
        """Slices of samples for which logits of all heads fit into a processor's cache."""
        size = max(256, _CACHED // (self.num_folds * num_classes))
        yield from (slice(first, first + size) for first in range(0, len(self.labels), size))


def principal_axes(features: Tensor, *, most: int = 2048) -> tuple[Tensor, Tensor]:
    """Principal axes (D, D) of features (N, D), and the mean square along each (D,); no axes above `most` features."""
    num_features = features.shape[1]
    if num_features > most:
        return features.new_empty(num_features, 0), torch.linalg.vector_norm(features, dim=0) ** 2 / len(features)
    spread, axes = torch.linalg.eigh((features.T @ features).double() / len(features))
    return axes.to(features.dtype), spread.clamp(min=0).to(features.dtype)


def train_heads(heads: Tensor, data: Folded, lam: float, matrix: Tensor, num_steps: int) -> Tensor:
    """The heads after some steps of L-BFGS, with regularisation `lam` and noise matrix `matrix` (C, C)."""
    num_folds, num_rows, num_classes = heads.shape
    counts = data.num_folds * len(data.labels) - torch.bincount(data.folds, minlength=num_folds) * data.num_folds
    share = (data.num_folds / counts.clamp(min=1)).to(heads.dtype)  # of a sample in the mean loss of a head
    is_identity = torch.equal(matrix, torch.eye(num_classes, device=matrix.device))
    log_columns = None if is_identity else matrix.T.log()
    # In these coordinates the loss curves about equally in all directions.
    scale = (data.spread / num_classes + lam).rsqrt()[:, None]

    def to_heads(place: Tensor) -> Tensor:
        weights = scale * place[:, :-1]
        weights = data.axes @ weights if data.axes.shape[1] else weights
        return torch.cat([weights, 2 * place[:, -1:]], dim=1)

    def loss_and_slope(flat: Tensor) -> tuple[float, Tensor]:
        current = to_heads(flat.view_as(heads))
        weights = current[:, :-1].transpose(0, 1).reshape(num_rows - 1, -1)
        loss, slope = lam / 2 * weights.square().sum().double(), lam * weights
        bias_slope = torch.zeros_like(current[:, -1])
        for rows in data.blocks(num_classes):
            logits = _logits(data.features[rows], current)
            weight = share * (data.folds[rows, None] != torch.arange(num_folds, device=heads.device))
            log_likelihoods, error = _explain(logits, data.labels[rows], weight, log_columns)
            loss = loss - (weight * log_likelihoods).sum().double()
            slope.addmm_(data.features[rows].T, error.flatten(1))
            bias_slope += error.sum(dim=0)
        slope = slope.view(num_rows - 1, num_folds, num_classes).transpose(0, 1)
        slope = scale * (data.axes.T @ slope if data.axes.shape[1] else slope)
        return loss.item(), torch.cat([slope, 2 * bias_slope[:, None]], dim=1).flatten()

    weights = heads[:, :-1]
    weights = data.axes.T @ weights if data.axes.shape[1] else weights
    start = torch.cat([weights / scale, heads[:, -1:] / 2], dim=1).flatten()
    return to_heads(minimise(loss_and_slope, start, num_steps).view_as(heads))


def out_of_sample(heads: Tensor, data: Folded) -> Tensor:
    """Log-probabilities (N, C) of each sample by the head that did not see it."""
    log_probs = heads.new_empty(len(data.labels), heads.shape[2])
    for rows in data.blocks(heads.shape[2]):
        logits = _logits(data.features[rows], heads)
        own = data.folds[rows, None, None].expand(-1, 1, heads.shape[2])
        log_probs[rows] = torch.log_softmax(logits.gather(1, own)[:, 0], dim=1)
    return log_probs


def _explain(logits: Tensor, labels: Tensor, weight: Tensor, log_columns: Tensor | None) -> tuple[Tensor, Tensor]:
    """Log-likelihoods (n, F) of the labels (n,) by logits (n, F, C), and minus their slopes times weight (n, F).

    `log_columns` is the logarithm of the transposed noise matrix (C, C), or None for the identity: then only the given
    class is possible, and nothing need be computed of the others. The slopes take the place of the logits.
    """
    logits -= logits.amax(dim=2, keepdim=True)
    if log_columns is None:
        given = labels[:, None, None].expand(-1, logits.shape[1], 1)
        log_joint = logits.gather(2, given)[:, :, 0]
        log_total = _to_probs(logits, weight)
        return log_joint - log_total, logits.scatter_add_(2, given, -weight[:, :, None])
    joint = logits + log_columns[labels][:, None]
    log_total, log_joint = _to_probs(logits, weight), _to_probs(joint, weight)
    return log_joint - log_total, logits.sub_(joint)


def _to_probs(logits: Tensor, weight: Tensor) -> Tensor:
    """Turn logits (n, F, C) in place into probabilities times weight (n, F); returns their log-sum-exp (n, F)."""
    largest = logits.amax(dim=2, keepdim=True)
    total = logits.sub_(largest).exp_().sum(dim=2, keepdim=True)
    logits *= weight[:, :, None] / total
    return (largest + total.log())[:, :, 0]


def _logits(features: Tensor, heads: Tensor) -> Tensor:
    """Logits (n, F, C) of features (n, D) by all heads."""
    weights = heads[:, :-1].transpose(0, 1).reshape(features.shape[1], -1)
    return (features @ weights).view(len(features), len(heads), -1) + heads[:, -1]
