"""The net whose only trained part is one linear layer, and the vectors that the layer gets."""

from typing import Any

import torch
from torch import Tensor, nn

from dividemix.data.features import FeatureData
from dividemix.data.training_data import TrainingData
from dividemix.engine.state import State
from dividemix.errors import InputError
from dividemix.nets.linear import Fourier, Linear


def head_of(state: State) -> nn.Linear:
    """The linear layer that is trained. Raises InputError if the net has another one."""
    net = state.nets[0]
    if not isinstance(net, (Linear, Fourier)):
        raise InputError("method robust_vectors needs a linear head: set net to linear or fourier")
    return net.head


def vectors_of(data: TrainingData) -> FeatureData:
    """The data. Raises InputError unless they are vectors."""
    if not isinstance(data, FeatureData):
        raise InputError(
            "method robust_vectors is for vectors and texts, and these are images: give another method, or none"
        )
    return data


def features_of(state: State, data: FeatureData) -> Tensor:
    """What the linear layer gets (N, D). Raises InputError unless the net is a linear head."""
    net: Any = state.nets[0]
    head_of(state)
    with torch.no_grad():
        features: Tensor = net.features(data.features)
    return features


def set_head(state: State, heads: Tensor) -> None:
    """Give the net the mean of heads (F, D + 1, C), of which the last row is the bias."""
    mean, head = heads.mean(dim=0), head_of(state)
    head.weight.copy_(mean[:-1].T)
    head.bias.copy_(mean[-1])
