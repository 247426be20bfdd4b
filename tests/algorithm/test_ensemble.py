"""Prediction, against a loop: one net, one image at a time, softmax by hand."""

import math

import pytest
import torch
from tiny import NUM_CLASSES, TinyData, TinyNet, tiny_nets

from dividemix.algorithm.ensemble import predict_probs


@pytest.mark.parametrize("num_samples", [1, 23, 1025])
def test_probabilities_are_each_nets_softmax(num_samples: int) -> None:
    data, nets = TinyData(num_samples), [TinyNet(seed=10 + k, dropout=0.5) for k in range(3)]
    for net in nets:
        assert net.norm.running_mean is not None
        net.norm.running_mean.normal_()
        net.train()
    before = [{name: tensor.clone() for name, tensor in net.state_dict().items()} for net in nets]
    probs = predict_probs(nets, data)
    assert probs.shape == (3, num_samples, NUM_CLASSES)
    for k, net in enumerate(nets):
        assert not net.training
        assert all(torch.equal(tensor, before[k][name]) for name, tensor in net.state_dict().items())
        for i in {*range(min(num_samples, 23)), *range(max(num_samples - 3, 0), num_samples)}:
            logits = net(data.images[i : i + 1])[0].tolist()
            powers = [math.exp(z) for z in logits]
            assert probs[k, i].tolist() == pytest.approx([p / sum(powers) for p in powers], rel=1e-9)


def test_the_mean_is_the_ensembles_prediction_and_a_distribution() -> None:
    """The mean of probabilities, not the softmax of summed logits: the two differ."""
    data, nets = TinyData(8), tiny_nets()
    mean = predict_probs(nets, data).mean(dim=0)
    assert mean.sum(dim=1).tolist() == pytest.approx([1.0] * 8)
    with torch.no_grad():
        summed = torch.softmax(nets[0](data.images) + nets[1](data.images), dim=1)
    assert not torch.allclose(mean, summed, atol=1e-3)


def test_extreme_logits_stay_probabilities() -> None:
    nets = [TinyNet(seed=10 + k) for k in range(2)]
    for net in nets:
        net.head.weight.data *= 1e6
    probs = predict_probs(nets, TinyData(8))
    assert probs.isfinite().all()
    assert probs.sum(dim=2).flatten().tolist() == pytest.approx([1.0] * 16)
