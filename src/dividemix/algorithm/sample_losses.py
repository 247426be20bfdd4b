"""The nets' losses on the given labels before an epoch: what co-divide compares (Eq. 1).

Shapes: K nets, n samples of the epoch, B samples in a batch, C classes.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from dividemix.data.draw import sweep
from dividemix.data.training_data import TrainingData
from dividemix.engine.state import State


def sample_losses(state: State, data: TrainingData, samples: Tensor) -> Tensor:
    """Cross-entropy (K, n) of every net on the samples without augmentation, against their given labels."""
    # Written in place: small tensors that stay between the large, short-lived blocks of each batch fragment the heap.
    dtype = next(state.predictors[0].parameters()).dtype
    losses = torch.empty(len(state.learners), len(samples), dtype=dtype, device=data.labels.device)
    for place, labels, log_probs in evaluated(state, data, samples):
        losses[:, place] = label_losses(log_probs, labels)
    return losses


def label_losses(log_probs: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy (K, B) of the labels (B,), or of labels (K, B), from log-probabilities (K, B, C)."""
    return -log_probs.gather(2, labels.expand(log_probs.shape[:2])[..., None]).squeeze(2)


def evaluated(state: State, data: TrainingData, samples: Tensor) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """Batch by batch: its place among the samples, its given labels (B,) and log-probabilities (K, B, C).

    Leaves the nets in evaluation mode. Gradients are off while a batch is computed.
    """
    n = len(samples)
    batches = samples[sweep(n, data.at_once)]
    nets = [net.eval() for net in state.predictors]
    start = 0
    for index, x in state.progress.watch("co-divide", zip(batches, data.plain(batches), strict=True), len(batches)):
        stop = min(start + len(index), n)  # the last batch repeats the last sample to be full
        with torch.inference_mode():
            log_probs = torch.stack([net(x) for net in nets]).log_softmax(dim=2)
        yield slice(start, stop), data.labels[index][: stop - start], log_probs[:, : stop - start]
        start = stop
