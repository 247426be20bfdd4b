"""What methods with a soft label for each sample think of the given labels."""

import torch
from torch import Tensor

from dividemix.data.training_data import TrainingData
from dividemix.engine.state import State
from dividemix.methods.evaluation import evaluate, judge_by_loss, judge_without_own_opinion, judgement
from dividemix.methods.method import Judgement


def judge_by_soft_labels(state: State, data: TrainingData, soft: Tensor | None) -> Judgement:
    """The share of each given label in the sample's soft label; soft labels (N, C) are of the training samples.

    By the loss mixture if there are none yet and, with a warning, if the data has other samples, such as held-out ones.
    """
    if soft is None:
        return judge_by_loss(state, data)
    if len(soft) != len(data.labels):
        return judge_without_own_opinion(state, data)
    seen = evaluate(state, data, torch.arange(len(data.labels)), keep_probs=True)
    return judgement(seen, soft.cpu().double().gather(1, data.labels.cpu()[:, None]).T.clamp(max=1))


def share_changed(soft: Tensor, labels: Tensor) -> float:
    """The share of samples whose soft label (N, C) is largest for another class than the given one (N,)."""
    return (soft.argmax(dim=1) != labels).double().mean().item()
