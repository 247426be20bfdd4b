"""Both networks predict together: the mean of their probabilities."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from dividemix.data.draw import sweep
from dividemix.data.training_data import TrainingData


@torch.inference_mode()
def predict_probs(nets: Sequence[nn.Module], data: TrainingData) -> Tensor:
    """Probabilities (K, N, C) of all samples by each of the K nets; their mean over K is the ensemble's prediction.

    Leaves the nets in evaluation mode.
    """
    for net in nets:
        net.eval()
    num_samples = len(data.labels)
    stream = data.plain(sweep(num_samples, data.at_once))
    probs = [torch.stack([torch.softmax(net(x), dim=1) for net in nets]) for x in stream]
    return torch.cat(probs, dim=1)[:, :num_samples]
