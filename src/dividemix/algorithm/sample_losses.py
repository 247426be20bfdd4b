"""What the nets make of the given labels before an epoch: the losses that co-divide compares (Eq. 1).

Shapes: K nets, n samples of the epoch, C classes.
"""

import torch
from torch import Tensor

from dividemix.algorithm.draw import sweep
from dividemix.algorithm.plausibility import strongest_rivals
from dividemix.algorithm.state import State
from dividemix.algorithm.training_data import TrainingData


def sample_losses(state: State, data: TrainingData, samples: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Cross-entropy (K, n) of every net on the samples as they are, against their given labels.

    And for each net and sample the likeliest other class, and the cross-entropy against that.
    """
    batches = samples[sweep(len(samples), data.at_once)]
    losses, rivals, rival_losses = [], [], []
    with torch.inference_mode():
        for net in state.nets:
            net.eval()
        for index, x in state.progress.watch("co-divide", zip(batches, data.plain(batches), strict=True), len(batches)):
            log_probs = torch.stack([net(x) for net in state.nets]).log_softmax(dim=2)  # (K, B, C)
            labels, others = data.labels[index], strongest_rivals(log_probs, data.labels[index])
            losses.append(-log_probs.gather(2, labels.expand_as(others)[..., None]).squeeze(2))
            rivals.append(others)
            rival_losses.append(-log_probs.gather(2, others[..., None]).squeeze(2))
    n = len(samples)  # the last batch is filled up with the last sample
    return torch.cat(losses, dim=1)[:, :n], torch.cat(rivals, dim=1)[:, :n], torch.cat(rival_losses, dim=1)[:, :n]
