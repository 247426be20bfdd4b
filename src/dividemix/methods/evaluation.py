"""One pass of the nets over samples with given labels, and a judgement of the labels by a mixture over the losses.

Shapes: K nets, n samples, C classes.
"""

import warnings
from dataclasses import dataclass

import torch
from torch import Tensor

from dividemix.algorithm.divide import clean_probability, normalise
from dividemix.algorithm.sample_losses import evaluated, label_losses
from dividemix.algorithm.settings import MixtureName
from dividemix.data.training_data import TrainingData
from dividemix.engine.large_tensor import large_tensor
from dividemix.engine.state import State
from dividemix.errors import DivergedError, OtherOpinionWarning
from dividemix.methods.method import Judgement


@dataclass(frozen=True)
class Evaluation:
    """What the nets predict for n samples, on the CPU. A rival is the most likely class other than the given one."""

    losses: Tensor  # (K, n): cross-entropy of the given labels
    rivals: Tensor  # (K, n)
    rival_losses: Tensor  # (K, n): cross-entropy of the rivals
    pred_probs: Tensor | None = None  # (n, C): what the nets predict together, if asked for


def evaluate(state: State, data: TrainingData, samples: Tensor, *, keep_probs: bool = False) -> Evaluation:
    """Evaluate the samples `samples` (n,) of the data, without augmentation.

    Raises DivergedError if a loss is not a number: the weights may be finite and their products not.
    """
    # Written in place: small tensors that stay between the large, short-lived blocks of each batch fragment the heap.
    dtype, device = next(state.predictors[0].parameters()).dtype, data.labels.device
    losses, rival_losses = torch.empty(2, len(state.learners), len(samples), dtype=dtype, device=device)
    rivals = torch.empty_like(losses, dtype=torch.int64)
    pred_probs: Tensor | None = None
    for place, labels, log_probs in evaluated(state, data, samples):
        losses[:, place] = label_losses(log_probs, labels)
        others = strongest_rivals(log_probs, labels)
        rivals[:, place] = others
        rival_losses[:, place] = label_losses(log_probs, others)
        if keep_probs:
            if pred_probs is None:
                pred_probs = large_tensor(len(samples), log_probs.shape[2])
            pred_probs[place] = log_probs.exp().mean(dim=0).float().cpu()
    if losses.isnan().any():
        raise DivergedError("training diverged: the networks' predictions are not finite; try a smaller lr")
    return Evaluation(losses.cpu(), rivals.cpu(), rival_losses.cpu(), pred_probs)


def strongest_rivals(scores: Tensor, labels: Tensor) -> Tensor:
    """For each sample the class other than its label (n,) with the largest score; scores (K, n, C) to (K, n)."""
    given = labels.expand(scores.shape[:-1])[..., None]
    return scores.scatter(-1, given, -torch.inf).argmax(dim=-1)


def judge_by_loss(state: State, data: TrainingData, mixture: MixtureName = "gaussian") -> Judgement:
    """Each net's opinion: the posterior of the small-loss component of a mixture over its losses."""
    seen = evaluate(state, data, torch.arange(len(data.labels)), keep_probs=True)
    clean_prob = torch.stack([clean_probability(normalise(losses), mixture)[0] for losses in seen.losses])
    return judgement(seen, clean_prob)


def judge_without_own_opinion(state: State, data: TrainingData) -> Judgement:
    """The opinion by the losses, with a warning: the method has one of its own of the training samples alone."""
    message = "samples are held out: the method has no opinion of its own of them; all labels are judged by the losses"
    warnings.warn(message, OtherOpinionWarning, stacklevel=3)
    return judge_by_loss(state, data)


def judgement(seen: Evaluation, clean_prob: Tensor) -> Judgement:
    """The judgement with these clean probabilities (K, n), from an evaluation with keep_probs."""
    assert seen.pred_probs is not None
    return Judgement(seen.pred_probs, seen.losses.double(), clean_prob, sample_probs=seen.pred_probs)
