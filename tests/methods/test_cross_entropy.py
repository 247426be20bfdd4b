"""Cross-entropy. Oracles: a plain loop of torch's own SGD, and DivideMix's warm-up, which is the same."""

import itertools
import math
from typing import Any

import pytest
import torch
from tiny import TinyData, copied, fit, start, tiny_nets
from torch.nn import functional as F
from torch.optim import SGD

from dividemix.methods import METHODS
from dividemix.methods.cross_entropy import METHOD
from dividemix.methods.dividemix import DivideMixSettings
from dividemix.methods.method import MethodSettings

FIELDS: dict[str, Any] = {"epochs": 4, "batch_size": 4, "lr": 0.05, "lr_drop_epoch": 3}


def test_it_is_a_plain_loop_over_shuffled_batches_of_2b() -> None:
    """Views and batches are those that the data was asked for; the steps are torch's own."""
    s, data = MethodSettings(**FIELDS, momentum=0.8, weight_decay=1e-3), TinyData()
    state = start(METHOD, s, data)
    reports = list(fit(METHOD, state, data, s))

    net = tiny_nets(num_nets=1)[0].train()
    sgd = SGD(net.parameters(), lr=s.lr, momentum=0.8, weight_decay=1e-3)
    num_steps = math.ceil(len(data.labels) / 8)
    asked = zip(data.asked, data.views, strict=True)
    means = []
    for epoch in range(4):
        sgd.param_groups[0]["lr"] = 0.05 if epoch < 3 else 0.005
        losses, seen = [], []
        for index, views in itertools.islice(asked, num_steps):
            assert len(index) == 8
            loss = F.cross_entropy(net(views), data.labels[index])
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            losses.append(loss.item())
            seen += index.tolist()
        assert set(seen) == set(range(len(data.labels)))
        means.append(math.fsum(losses) / num_steps)
    assert next(asked, None) is None
    assert [report.losses["loss"][0] for report in reports] == pytest.approx(means, rel=1e-5)
    for name, tensor in state.nets[0].state_dict().items():
        torch.testing.assert_close(tensor, net.state_dict()[name])


def test_its_only_phase_is_training_and_each_epoch_may_be_selected() -> None:
    s, data = MethodSettings(**FIELDS), TinyData()
    (phase,) = METHOD.phases(s)
    assert (phase.name, phase.num_epochs, phase.selects) == ("train", 4, True)
    assert METHOD.num_nets(s) == 1
    for report in fit(METHOD, start(METHOD, s, data), data, s):
        assert (report.phase, report.selects) == ("train", True)
        assert report.losses.keys() == {"loss"}
        assert (report.divisions, report.sample_losses, report.figures) == ([], None, {})
    assert data.num_passes == 0


def test_it_is_the_warm_up_of_dividemix_to_the_end() -> None:
    s, data = MethodSettings(**FIELDS), TinyData()
    state = start(METHOD, s, data)
    losses = [report.losses for report in fit(METHOD, state, data, s)]
    paper, warm_up = METHODS["dividemix"], DivideMixSettings(**FIELDS, warmup_epochs=4, co_training=False)
    other = start(paper, warm_up, data)
    assert losses == [report.losses for report in fit(paper, other, data, warm_up)]
    for a, b in zip(state.nets[0].parameters(), other.nets[0].parameters(), strict=True):
        assert torch.equal(a, b)


def test_resumed_it_continues_to_the_bit() -> None:
    s, data = MethodSettings(**FIELDS), TinyData()
    straight, first, second = (start(METHOD, s, data, nets=tiny_nets(dropout=0.3, num_nets=1)) for _ in range(3))
    expected = [report.losses for report in fit(METHOD, straight, data, s)]
    losses = [report.losses for report in itertools.islice(fit(METHOD, first, data, s), 2)]
    second.load(copied(first.tensors()), first.epoch)
    losses += [report.losses for report in fit(METHOD, second, data, s)]
    assert losses == expected
    tensors = straight.tensors()
    assert all(torch.equal(tensor, tensors[name]) for name, tensor in second.tensors().items())


def test_it_has_no_settings_of_its_own() -> None:
    assert METHOD.settings is MethodSettings
