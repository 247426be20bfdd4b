"""MentorNet. Oracles: the rules as tables, the moving percentile by hand, loops over recorded views, cross-entropy."""

from typing import Any

import pytest
import torch
from method_checks import SHORT, assert_phases_add_up, assert_published_fit, assert_resumes, assert_trains_on_odd_data
from method_checks import started as start
from tiny import TinyData, TinyNet
from torch.nn import functional as F
from torch.optim import SGD

from dividemix.algorithm.sample_losses import sample_losses
from dividemix.methods import METHODS, loop
from dividemix.methods.mentornet import (
    METHOD,
    PUBLISHED,
    MentorNetSettings,
    learn,
    learned_weights,
    moved,
    predefined,
    predefined_soft,
)
from dividemix.methods.method import TrainingSets
from dividemix.methods.noise_estimate import estimated_noise_rate

FIELDS: dict[str, Any] = {**SHORT, "epochs": 5}
CURRICULA = ("predefined", "data_driven")


# The rules.


def test_the_curriculum_begins_after_18_percent_and_is_soft_from_90_on() -> None:
    """With 100 epochs, e is the epoch: the table of the paper's rule at e = 18, 19, 89, 90."""
    s = MentorNetSettings(epochs=100)
    assert [(phase.name, phase.num_epochs) for phase in METHOD.phases(s)] == [("burn_in", 19), ("curriculum", 81)]
    driven = MentorNetSettings(epochs=100, curriculum="data_driven")
    assert METHOD.phases(driven)[0].num_epochs == 17
    losses, m = torch.tensor([0.5, 1.0, 1.25, 3.0]), torch.tensor(1.0)
    assert predefined(losses, m).tolist() == [1, 1, 0, 0]
    assert predefined_soft(losses, m).tolist() == [1, 1, 0.75, 0]


@pytest.mark.parametrize(("epoch", "expected"), [(18, "all"), (19, "hard"), (89, "hard"), (90, "soft")])
def test_each_epoch_has_its_rule(epoch: int, expected: str) -> None:
    """One step of all samples, by hand from its view."""
    s = MentorNetSettings(
        **{**FIELDS, "epochs": 100, "batch_size": 20, "momentum": 0.0, "weight_decay": 0.0, "lr_drop_epoch": 100},
        early_drop=0.0,
        late_drop=0.0,
        noise_rate=0.4,
        percentile_decay=0.25,
    )
    data = TinyData()
    sets = TrainingSets(data)
    state = start(METHOD, s, sets)
    before = sample_losses(state, data, torch.arange(40))[0]
    state.epoch = epoch
    report = loop.train_one(METHOD, state, sets, s)
    net = TinyNet(10).train()
    (x,), (index,) = data.views, data.asked
    losses = F.cross_entropy(net(x), data.labels[index], reduction="none")
    m = 0.25 * before.quantile(0.6) + 0.75 * losses.detach().quantile(0.6)
    v = []
    for loss in losses.tolist():
        hard = float(loss <= m)
        soft = min(max(1 - (loss - float(m)), 0.0), 1.0)
        v.append({"all": 1.0, "hard": hard, "soft": soft}[expected])
    total = sum(weight * loss for weight, loss in zip(v, losses, strict=True)) / 40
    assert isinstance(total, torch.Tensor)
    total.backward()
    assert report.losses["loss"][0] == pytest.approx(total.item(), rel=1e-5)
    assert report.figures["mean_weight"] == pytest.approx(sum(v) / 40, rel=1e-5)
    for name, parameter in net.named_parameters():
        assert parameter.grad is not None
        found = dict(state.nets[0].named_parameters())[name]
        torch.testing.assert_close(found, parameter - s.lr * parameter.grad)
    if expected != "all":
        assert state.buffers["percentile"].tolist() == pytest.approx([float(m)])
        assert report.figures["noise_rate"] == 0.4


def test_the_percentile_moves_by_its_recursion() -> None:
    losses, m = [torch.tensor([0.0, 1.0, 2.0, 3.0, 4.0]), torch.tensor([4.0, 4.0, 8.0])], torch.tensor(10.0)
    m = moved(m, losses[0], 0.75, 0.5)
    assert m.item() == 0.5 * 10 + 0.5 * 3
    m = moved(m, losses[1], 0.5, 0.5)
    assert m.item() == 0.5 * 6.5 + 0.5 * 4


def test_exactly_the_share_that_is_not_dropped_counts() -> None:
    s, data = MentorNetSettings(**{**FIELDS, "batch_size": 20}, noise_rate=0.0), TinyData()
    sets = TrainingSets(data)
    early, late = (
        report.figures["mean_weight"] for report in list(loop.fit(METHOD, start(METHOD, s, sets), sets, s))[:2]
    )
    assert early == pytest.approx(int(40 * 0.5) / 40)
    assert late <= int(40 * 0.95) / 40


def test_without_noise_drop_and_decay_it_is_cross_entropy() -> None:
    """No noise means p = 1, and rho is 0: m is the largest loss of the batch."""
    s = MentorNetSettings(**FIELDS, noise_rate=0.0, percentile_decay=0.0, early_drop=0.0, late_drop=0.0)
    data = TinyData()
    sets = TrainingSets(data)
    state = start(METHOD, s, sets)
    for report in loop.fit(METHOD, state, sets, s):
        assert report.figures["mean_weight"] == 1
    net = TinyNet(10).train()
    sgd = SGD(net.parameters(), lr=s.lr, momentum=s.momentum, weight_decay=s.weight_decay)
    for index, x in zip(data.asked, data.views, strict=True):
        sgd.zero_grad()
        F.cross_entropy(net(x), data.labels[index]).backward()
        sgd.step()
    for name, parameter in net.named_parameters():
        torch.testing.assert_close(dict(state.nets[0].named_parameters())[name], parameter)


def test_the_noise_rate_is_estimated_once_where_the_curriculum_begins() -> None:
    s, data = MentorNetSettings(**FIELDS), TinyData()
    sets = TrainingSets(data)
    state = start(METHOD, s, sets)
    epochs = loop.fit(METHOD, state, sets, s)
    assert next(epochs).figures.keys() == {"mean_weight"}
    expected = estimated_noise_rate(state, data)
    for report in epochs:
        assert report.figures["noise_rate"] == pytest.approx(expected)
    assert state.buffers["noise_rate"].shape == (1,)


# The curriculum that is learned.


def test_the_small_net_learns_the_predefined_rule_from_a_grid() -> None:
    """Losses from 0 to 30 and differences from -5 to 5; right where l <= m. Tested on points between."""
    generator = torch.Generator().manual_seed(0)
    state = start(METHOD, MentorNetSettings(**FIELDS), TrainingSets(TinyData()))
    points = torch.rand(4000, 2, generator=generator) * torch.tensor([30.0, 10.0]) - torch.tensor([0.0, 5.0])
    is_right = (points[:, 1] <= 0).float()
    learned = learn(points[:2000], is_right[:2000], torch.ones(2000), state)
    with torch.no_grad():
        found = learned(points[2000:]) > 0.5
    assert (found == is_right[2000:].bool()).float().mean() > 0.97
    # Before the next epoch it starts from what it was: few steps are enough for a rule that has moved a little.
    is_right = (points[:, 1] <= 0.5).float()
    learned = learn(points[:2000], is_right[:2000], torch.ones(2000), state)
    with torch.no_grad():
        found = learned(points[2000:]) > 0.5
    assert (found == is_right[2000:].bool()).float().mean() > 0.97


@pytest.mark.parametrize("with_trusted", [False, True])
def test_it_prefers_small_losses_and_leaves_no_gradient(with_trusted: bool) -> None:
    data = TinyData()
    sets = TrainingSets(data, TinyData(noise=0.0) if with_trusted else None)
    s = MentorNetSettings(**{**FIELDS, "epochs": 20}, curriculum="data_driven")
    state = start(METHOD, s, sets)
    reports = list(loop.fit(METHOD, state, sets, s))
    assert ("trusted_stand_in" in reports[-1].figures) != with_trusted
    assert ("stand_in" in state.samples) != with_trusted
    weigh = learned_weights(state, sets, 0.3, torch.tensor(0.5, dtype=torch.float64))
    with torch.no_grad():
        v = weigh(torch.tensor([0.01, 5.0], dtype=torch.float64), torch.tensor(0.5, dtype=torch.float64))
    assert v[0] > 0.5 > v[1]
    assert not v.requires_grad


# The whole.


@pytest.mark.parametrize("curriculum", CURRICULA)
@pytest.mark.parametrize("trusted", [None, TinyData(9, seed=5, noise=0.0)])
def test_resumed_it_continues_to_the_bit(curriculum: Any, trusted: TinyData | None) -> None:
    s = MentorNetSettings(**{**FIELDS, "epochs": 6}, curriculum=curriculum)
    assert_resumes(METHOD, s, TrainingSets(TinyData(), trusted))


@pytest.mark.parametrize("curriculum", CURRICULA)
@pytest.mark.parametrize("with_trusted", [False, True])
def test_it_trains_anything(curriculum: Any, with_trusted: bool) -> None:
    assert_trains_on_odd_data(METHOD, **FIELDS, curriculum=curriculum, with_trusted=with_trusted)


def test_it_is_a_method_with_phases_for_any_number_of_epochs() -> None:
    assert METHODS["mentornet"] is METHOD
    assert not METHOD.needs_trusted
    for curriculum in CURRICULA:
        assert_phases_add_up(METHOD, curriculum=curriculum)
    assert_published_fit(METHOD, PUBLISHED)
