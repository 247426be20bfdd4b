"""The stand-in for trusted samples. Oracle: sorting each class by hand."""

import math

import torch
from method_checks import started
from tiny import TinyData

from dividemix.algorithm.sample_losses import sample_losses
from dividemix.methods.cross_entropy import METHOD
from dividemix.methods.method import MethodSettings, TrainingSets
from dividemix.methods.stand_in import likely_clean, stand_in_figures, trusted_samples


def test_it_is_the_tenth_of_each_class_with_the_smallest_losses_and_at_least_one_sample() -> None:
    generator = torch.Generator().manual_seed(0)
    labels = torch.tensor([0] * 25 + [1] * 10 + [2] * 1 + [4] * 3)
    losses = torch.rand(len(labels), generator=generator)
    expected = set()
    for label, count in ((0, 3), (1, 1), (2, 1), (4, 1)):
        members = [i for i in range(len(labels)) if labels[i] == label]
        assert count == math.ceil(len(members) / 10)
        expected |= set(sorted(members, key=lambda i: float(losses[i]))[:count])
    assert set(likely_clean(losses, labels).nonzero().squeeze(1).tolist()) == expected


def test_trusted_samples_are_taken_where_they_are_given() -> None:
    s, data, trusted = MethodSettings(), TinyData(), TinyData(7)
    sets = TrainingSets(data, trusted)
    state = started(METHOD, s, sets)
    found, index = trusted_samples(state, sets)
    assert found is trusted
    assert index.tolist() == list(range(7))
    assert state.samples == {}
    assert stand_in_figures(sets) == {}


def test_without_them_the_stand_in_is_chosen_once_and_kept_with_the_samples() -> None:
    s, data = MethodSettings(), TinyData()
    sets = TrainingSets(data)
    state = started(METHOD, s, sets)
    losses = sample_losses(state, data, torch.arange(40))[0]
    found, index = trusted_samples(state, sets)
    assert found is data
    assert index.tolist() == likely_clean(losses, data.labels).nonzero().squeeze(1).tolist()
    with torch.no_grad():
        next(state.nets[0].parameters()).mul_(-1)
    assert torch.equal(trusted_samples(state, sets)[1], index)
    assert state.samples["stand_in"].shape == (40,)
    assert stand_in_figures(sets) == {"trusted_stand_in": 1.0}
