"""Stages that begin again. Oracles: the weights before the first epoch, and rates by hand."""

import pytest
import torch
from tiny import TinyData, copied, fit, same, start, weights_of

from dividemix.engine.state import State
from dividemix.methods.cross_entropy import METHOD
from dividemix.methods.method import MethodSettings
from dividemix.methods.restart import keep_first_weights, restart, set_rate


def trained() -> tuple[State, dict[str, torch.Tensor]]:
    s, data = MethodSettings(epochs=2, batch_size=4, lr=0.05), TinyData()
    state = start(METHOD, s, data)
    keep_first_weights(state)
    first = weights_of(state.nets[0])
    for _ in fit(METHOD, state, data, s):
        pass
    return state, first


def test_a_restarted_net_has_its_first_weights_and_statistics_and_no_momentum() -> None:
    state, first = trained()
    assert not same(first, weights_of(state.nets[0]))
    keep_first_weights(state)  # too late: nothing is kept
    other = start(METHOD, MethodSettings(epochs=2), TinyData())
    other.load(copied(state.tensors()), 2)
    for each in (state, other):
        restart(each)
        assert same(first, weights_of(each.nets[0]))
        assert not any(name.startswith("optimizer.") for name in each.tensors())


def test_a_stage_has_the_whole_schedule_in_its_own_length() -> None:
    """5 epochs of a schedule of 20 that drops after 10: from the fourth on, as 8 of 20 are done before."""
    state, s = trained()[0], MethodSettings(epochs=20, lr=0.1, lr_drop_epoch=10)
    rates = []
    for done in range(5):
        set_rate(state, s, done, 5)
        rates.append(state.learners[0].optimizer.param_groups[0]["lr"])
    assert rates == pytest.approx([0.1, 0.1, 0.1, 0.01, 0.01])
