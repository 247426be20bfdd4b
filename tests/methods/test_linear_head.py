"""The linear layer of a net. Oracle: the mean of the heads, by hand; the net's own forward pass."""

import numpy as np
import pytest
import torch
from tiny import TinyData, tiny_nets

from dividemix.data.features import FeatureData
from dividemix.engine.state import State
from dividemix.errors import InputError
from dividemix.methods.linear_head import features_of, head_of, set_head, vectors_of
from dividemix.methods.method import MethodSettings
from dividemix.nets.linear import Fourier, Linear

VECTORS = np.random.default_rng(0).normal(size=(6, 4))
DATA = FeatureData(VECTORS, np.arange(6) % 3, mean=np.zeros(4), std=np.ones(4))


@pytest.mark.parametrize("net", [Linear(3, 4), Fourier(3, 4, 8)])
def test_the_net_computes_with_the_mean_of_the_heads(net: Linear | Fourier) -> None:
    state = State.start([net], MethodSettings())
    features = features_of(state, DATA)
    heads = torch.randn(2, features.shape[1] + 1, 3, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        set_head(state, heads)
        expected = sum(features @ head[:-1] + head[-1] for head in heads) / 2
        torch.testing.assert_close(net(DATA.features), expected)


def test_images_and_other_nets_are_refused() -> None:
    with pytest.raises(
        InputError, match="is for vectors and texts, and these are images: give another method, or none"
    ):
        vectors_of(TinyData())
    with pytest.raises(InputError, match="set net to linear or fourier"):
        head_of(State.start(tiny_nets(num_nets=1), MethodSettings()))
