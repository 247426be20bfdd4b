"""Co-teaching. Oracles: R(e) by hand, plain loops of torch's SGD, and ordinary training where nothing is dropped."""

import itertools
import math
from typing import Any

import method_checks
import pytest
import torch
from tiny import TinyData, fit, record, start, tiny_nets
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import SGD

from dividemix.engine.state import State
from dividemix.errors import InputError
from dividemix.methods.co_teaching import METHOD, NOISE_RATE, CoTeachingSettings, dropped_share

FIELDS: dict[str, Any] = {"epochs": 6, "batch_size": 4, "lr": 0.05, "lr_drop_epoch": 5, "ramp_share": 0.5}


def by_loops(data: TinyData, s: CoTeachingSettings) -> list[nn.Module]:
    """Two nets by a plain loop over the views that the data gave, after a training by the method."""
    nets = [net.train() for net in tiny_nets()]
    optimizers = [SGD(net.parameters(), lr=s.lr, momentum=s.momentum, weight_decay=s.weight_decay) for net in nets]
    asked = zip(data.asked, data.views, strict=True)
    for epoch in range(s.epochs):
        assert s.noise_rate is not None
        kept = 1 - s.noise_rate * min(epoch / 3, 1)
        for index, views in itertools.islice(asked, math.ceil(len(data.labels) / 8)):
            labels = data.labels[index]
            logits = [net(views) for net in nets]
            easiest = []
            for own in logits:
                losses = F.cross_entropy(own, labels, reduction="none").tolist()
                easiest.append(sorted(range(8), key=losses.__getitem__)[: max(1, int(kept * 8))])
            for k, (sgd, own) in enumerate(zip(optimizers, logits, strict=True)):
                sgd.param_groups[0]["lr"] = s.learning_rate(epoch)
                sgd.zero_grad()
                torch.stack(
                    [F.cross_entropy(own[i : i + 1], labels[i : i + 1]) for i in easiest[1 - k]]
                ).mean().backward()
                sgd.step()
    assert next(asked, None) is None
    return nets


@pytest.mark.parametrize("noise_rate", [0.0, 0.3, 0.6, 1.0])
def test_it_is_a_plain_loop_in_which_each_net_learns_from_the_others_choice(noise_rate: float) -> None:
    s, data = CoTeachingSettings(**FIELDS, noise_rate=noise_rate), TinyData()
    state = start(METHOD, s, data)
    for _ in fit(METHOD, state, data, s):
        pass
    for net, expected in zip(state.nets, by_loops(data, s), strict=True):
        for name, tensor in net.state_dict().items():
            torch.testing.assert_close(tensor, expected.state_dict()[name])


def test_without_noise_it_is_ordinary_training_of_both_nets_to_the_bit() -> None:
    s, data = CoTeachingSettings(**FIELDS, noise_rate=0.0), TinyData()
    state = start(METHOD, s, data)
    for _ in fit(METHOD, state, data, s):
        pass
    other = State.start(tiny_nets(), s)
    asked = zip(data.asked, data.views, strict=True)
    for epoch in range(s.epochs):
        for learner in other.learners:
            learner.optimizer.param_groups[0]["lr"] = s.learning_rate(epoch)
            learner.net.train()
        for index, views in itertools.islice(asked, 5):
            for learner in other.learners:
                learner.descend(F.cross_entropy(learner.net(views), data.labels[index]))
    for net, expected in zip(state.nets, other.nets, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(net.parameters(), expected.parameters(), strict=True))


def test_the_kept_share_follows_the_ramp() -> None:
    """E_k is 3: 1 - tau times 0, 1/3, 2/3, 1, 1, 1."""
    s, data = CoTeachingSettings(**FIELDS, noise_rate=0.6), TinyData()
    reports = list(fit(METHOD, start(METHOD, s, data), data, s))
    assert [report.figures["kept"] for report in reports] == pytest.approx([1.0, 0.8, 0.6, 0.4, 0.4, 0.4])
    assert [report.phase for report in reports] == ["ramp"] * 3 + ["train"] * 3
    assert [report.figures["noise_rate"] for report in reports] == [0.6] * 6


def test_the_ramp_takes_a_share_of_the_epochs_and_two_at_least() -> None:
    assert [CoTeachingSettings(epochs=epochs).ramp_epochs for epochs in (1, 10, 100, 200, 300)] == [2, 2, 5, 10, 15]
    method_checks.assert_phases_add_up(METHOD)


def test_the_noise_rate_is_estimated_after_the_first_epoch_until_the_ramp_ends() -> None:
    s, data = CoTeachingSettings(**FIELDS), TinyData(200)
    state = start(METHOD, s, data)
    passes, rates = [], []
    for report in fit(METHOD, state, data, s):
        passes.append(data.num_passes)
        rates.append(report.figures["noise_rate"])
    assert passes == [0, 1, 2, 3, 3, 3]
    assert rates[0] == 0
    assert rates[3] == rates[4] == rates[5]
    assert 0.1 < rates[5] < 0.5  # 30 % of the labels are wrong
    assert state.buffers[NOISE_RATE] == rates[5]
    assert dropped_share(state, data, s) == pytest.approx(rates[5])


def test_a_given_noise_rate_is_not_estimated() -> None:
    s, data = CoTeachingSettings(**FIELDS, noise_rate=0.2), TinyData()
    state = start(METHOD, s, data)
    for _ in fit(METHOD, state, data, s):
        pass
    assert data.num_passes == 0
    assert state.samples == {}
    with pytest.raises(InputError, match=r"noise_rate is 1\.5: it must be a number >= 0 and <= 1"):
        CoTeachingSettings(noise_rate=1.5)


def test_both_nets_see_the_same_views_in_training_mode() -> None:
    s, data = CoTeachingSettings(**FIELDS, noise_rate=0.2), TinyData()
    state = start(METHOD, s, data)
    _, calls = record(state, fit(METHOD, state, data, s))
    assert [call.kind for call in calls] == [(0, 8, "train", "grad"), (1, 8, "train", "grad")] * 5
    views: list[Tensor] = [call.x for call in calls]
    assert all(torch.equal(a, b) for a, b in zip(views[::2], views[1::2], strict=True))


@pytest.mark.parametrize("noise_rate", [None, 0.3])
def test_resumed_it_continues_to_the_bit(noise_rate: float | None) -> None:
    method_checks.assert_resumes(METHOD, CoTeachingSettings(**FIELDS, noise_rate=noise_rate))


@pytest.mark.parametrize("noise_rate", [None, 0.9, 1.0])
def test_it_trains_on_odd_data(noise_rate: float | None) -> None:
    method_checks.assert_trains_on_odd_data(METHOD, **FIELDS, noise_rate=noise_rate)
