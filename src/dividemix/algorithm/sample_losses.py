"""What the nets make of the given labels before an epoch: the losses that co-divide compares (Eq. 1).

Shapes: K nets, n samples of the epoch, C classes.
"""

import torch
from torch import Tensor

from dividemix.algorithm.plausibility import strongest_rivals
from dividemix.data.draw import sweep
from dividemix.data.training_data import TrainingData
from dividemix.engine.state import State


def sample_losses(state: State, data: TrainingData, samples: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Cross-entropy (K, n) of every net on the samples as they are, against their given labels.

    And for each net and sample the likeliest other class, and the cross-entropy against that.
    """
    batches = samples[sweep(len(samples), data.at_once)]
    # Written in place: small results, kept between the large blocks that each batch takes and frees, scatter the heap.
    dtype = next(state.nets[0].parameters()).dtype
    losses, rival_losses = torch.empty(2, len(state.nets), batches.numel(), dtype=dtype, device=data.labels.device)
    rivals = torch.empty_like(losses, dtype=torch.int64)
    place = 0
    with torch.inference_mode():
        for net in state.nets:
            net.eval()
        for index, x in state.progress.watch("co-divide", zip(batches, data.plain(batches), strict=True), len(batches)):
            log_probs = torch.stack([net(x) for net in state.nets]).log_softmax(dim=2)  # (K, B, C)
            labels, others = data.labels[index], strongest_rivals(log_probs, data.labels[index])
            here, place = slice(place, place + len(index)), place + len(index)
            losses[:, here] = -log_probs.gather(2, labels.expand_as(others)[..., None]).squeeze(2)
            rivals[:, here] = others
            rival_losses[:, here] = -log_probs.gather(2, others[..., None]).squeeze(2)
    n = len(samples)  # the last batch is filled up with the last sample
    return losses[:, :n], rivals[:, :n], rival_losses[:, :n]
