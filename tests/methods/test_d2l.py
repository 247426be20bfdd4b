"""D2L. Oracles: distances of a known dimension, loops over neighbours, ordinary training, LIDs written by hand."""

import itertools
import math
from typing import Any

import method_checks
import pytest
import torch
from tiny import TinyData, Undecided, copied, fit, same, start, tiny_nets, weights_of
from torch import Tensor, nn
from torch.nn import functional as F

from dividemix.engine.acceleration import compile_net
from dividemix.methods import cross_entropy, d2l
from dividemix.methods.d2l import (
    LIDS,
    METHOD,
    TURN,
    D2LSettings,
    blended_loss,
    dimensions,
    label_weight,
    local_dimensions,
    measured_lid,
    turns,
    with_newest,
)

FIELDS: dict[str, Any] = {"epochs": 8, "batch_size": 4, "lr": 0.05, "lr_drop_epoch": 6}
EARLY: dict[str, Any] = {"first_share": 0.0, "lid_window": 2}


# The dimensionality.


@pytest.mark.parametrize("dimension", [2, 5, 16])
def test_distances_that_grow_as_in_a_ball_give_its_dimension(dimension: int) -> None:
    """Distances U^(1/d) give d k / (k - 2) on average."""
    uniform = torch.rand(20_000, 20, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    distances = (uniform ** (1 / dimension)).sort(dim=1).values
    found = float(dimensions(distances).mean())
    assert found == pytest.approx(dimension * 20 / 18, rel=0.01)
    assert float(dimensions(1000 * distances).mean()) == pytest.approx(found, rel=1e-9)


def test_it_is_a_loop_over_each_samples_nearest_neighbours() -> None:
    features = torch.randn(30, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    rows = features.tolist()
    expected = []
    for i, row in enumerate(rows):
        nearest = sorted(math.dist(row, other) for j, other in enumerate(rows) if j != i)[:7]
        expected.append(-7 / sum(math.log(r / nearest[-1] + 1e-8) for r in nearest))
    assert local_dimensions(features, 7).tolist() == pytest.approx(expected, rel=1e-6)


def test_samples_with_a_twin_have_a_dimension_and_samples_that_are_all_equal_have_none() -> None:
    features = torch.randn(6, 3, generator=torch.Generator().manual_seed(1))
    features[1] = features[0]
    assert local_dimensions(features, 20).isfinite().all()
    for few in (torch.zeros(5, 3), torch.zeros(1, 3), torch.eye(2)):
        assert not local_dimensions(few, 20).isfinite().any()


def test_the_measured_lid_is_the_mean_over_random_batches_of_the_last_layers_inputs() -> None:
    s, data = D2LSettings(**FIELDS, lid_neighbours=5), TinyData(200)
    state = start(METHOD, s, data)
    generator = state.draws.clone_state()
    found = measured_lid(state, data, s)
    net, lids = state.nets[0].eval(), []
    for _ in range(10):
        index = torch.randperm(200, generator=generator)[:128]
        with torch.no_grad():
            body = net.get_submodule("norm")(net.get_submodule("body")(data.images[index].flatten(1)))
        lids.append(local_dimensions(torch.tanh(body), 5))
    assert found == pytest.approx(float(torch.cat(lids).mean()), rel=1e-9)
    assert not net.training


def test_of_a_compiled_net_the_same_lid_is_measured() -> None:
    s, data = D2LSettings(**FIELDS), TinyData()
    plain, compiled = (start(METHOD, s, data) for _ in range(2))
    compile_net(compiled.nets[0])
    assert measured_lid(compiled, data, s) == measured_lid(plain, data, s)


def test_a_lid_that_is_none_repeats_the_last_one() -> None:
    lids = torch.tensor([3.0, 2.0], dtype=torch.float64)
    for illegal in (math.nan, math.inf, 0.0, -1.0):
        assert with_newest(lids, illegal).tolist() == [3.0, 2.0, 2.0]
        assert with_newest(lids[:0], illegal).tolist() == [1.0]
    assert with_newest(lids, 1.5).tolist() == [3.0, 2.0, 1.5]


# The turn.


def test_a_series_with_a_jump_turns_at_the_jump() -> None:
    s = D2LSettings(epochs=30)  # the first 10 are not compared
    series = [9 - 0.2 * e + 0.05 * (-1) ** e for e in range(22)] + [9.0] * 3
    lids = torch.tensor(series, dtype=torch.float64)
    assert next(e for e in range(25) if turns(lids[: e + 1], e, s)) == 22


def test_a_jump_before_enough_epochs_is_not_a_turn() -> None:
    """10 + 5 epochs of 30: the LID before epoch 15 is the first that can turn."""
    s = D2LSettings(epochs=30)
    for epoch, expected in ((13, False), (14, False), (15, True), (16, True)):
        lids = torch.tensor([5.0 + 0.01 * (e % 2) for e in range(epoch)] + [6.0], dtype=torch.float64)
        assert turns(lids, epoch, s) is expected


def test_the_threshold_is_two_standard_deviations_of_the_window() -> None:
    s = D2LSettings(epochs=30)
    before = [4.0, 6.0, 5.0, 4.0, 6.0]
    deviation = math.sqrt(sum((value - 5) ** 2 for value in before) / 5)
    for newest, expected in ((5 + 1.99 * deviation, False), (5 + 2.01 * deviation, True)):
        assert turns(torch.tensor([*[9.0] * 15, *before, newest], dtype=torch.float64), 20, s) is expected


def test_alpha_falls_with_time_and_with_the_lid_over_its_minimum() -> None:
    s = D2LSettings(epochs=10)
    lids = torch.tensor([4.0, 2.0, 3.0], dtype=torch.float64)
    assert label_weight(lids, 2, s) == pytest.approx(math.exp(-0.2 * 1.5))
    assert label_weight(lids[:2], 0, s) == 1


def test_the_blended_loss_is_cross_entropy_with_blended_targets() -> None:
    logits = torch.randn(6, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    labels = torch.arange(6) % 3
    for alpha in (0.0, 0.4, 1.0):
        target = alpha * F.one_hot(labels, 3) + (1 - alpha) * F.one_hot(logits.argmax(dim=1), 3)
        torch.testing.assert_close(blended_loss(logits, labels, alpha), F.cross_entropy(logits, target))
    assert torch.equal(blended_loss(logits, labels, 1.0), F.cross_entropy(logits, labels))
    assert torch.equal(blended_loss(logits, labels, 0.0), F.cross_entropy(logits, logits.argmax(dim=1)))


# The training.


def written_lids(monkeypatch: pytest.MonkeyPatch, values: list[float]) -> None:
    """Measure these LIDs, one before each epoch."""
    monkeypatch.setattr(d2l, "measured_lid", lambda state, data, s: values[state.epoch])


def test_without_a_turn_it_is_cross_entropy_to_the_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    written_lids(monkeypatch, [9.0 - e for e in range(8)])
    s, data = D2LSettings(**FIELDS, **EARLY), TinyData()
    state, other = start(METHOD, s, data), start(cross_entropy.METHOD, s, data)
    losses = [report.losses for report in fit(METHOD, state, data, s)]
    assert losses == [report.losses for report in fit(cross_entropy.METHOD, other, data, s)]
    assert same(weights_of(state.nets[0]), weights_of(other.nets[0]))
    assert int(state.buffers[TURN]) == -1


@pytest.mark.parametrize("rollback", [True, False])
def test_at_the_turn_the_net_goes_back_one_epoch_and_labels_are_blended(
    rollback: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    lids = [5.0, 4.0, 4.1, 4.0, 6.0, 5.0, 4.0, 7.0]
    written_lids(monkeypatch, lids)
    s, data = D2LSettings(**FIELDS, **EARLY, rollback=rollback), TinyData()
    state = start(METHOD, s, data)
    seen: list[dict[str, Tensor]] = []
    handle = state.nets[0].register_forward_pre_hook(lambda net, args: seen.append(weights_of(net)))
    reports = list(fit(METHOD, state, data, s))
    handle.remove()
    assert int(state.buffers[TURN]) == 4
    at_start = seen[::5]  # of each epoch, of five steps each
    assert same(at_start[4], at_start[3]) == rollback
    alphas = [1.0] * 4 + [math.exp(-e / 8 * lids[e] / 4.0) for e in range(4, 8)]
    assert [report.figures["alpha"] for report in reports] == pytest.approx(alphas)
    assert [report.figures["lid"] for report in reports] == lids
    assert state.buffers.keys() == {LIDS, TURN}  # the kept weights are gone


def test_after_the_turn_it_is_a_plain_loop_with_blended_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    lids = [5.0, 4.0, 4.1, 6.0, 6.0, 5.0, 4.0, 7.0]
    written_lids(monkeypatch, lids)
    s, data = D2LSettings(**FIELDS, **EARLY), TinyData()
    state = start(METHOD, s, data)
    epochs = fit(METHOD, state, data, s)
    for _ in range(2):
        next(epochs)
    before = weights_of(state.nets[0])
    next(epochs)
    data.asked.clear()
    data.views.clear()
    list(epochs)

    net = tiny_nets(num_nets=1)[0].train()
    net.load_state_dict(before)
    sgd = torch.optim.SGD(net.parameters(), lr=s.lr, momentum=s.momentum, weight_decay=s.weight_decay)
    asked = zip(data.asked, data.views, strict=True)
    for epoch in range(3, 8):
        sgd.param_groups[0]["lr"] = s.learning_rate(epoch)
        alpha = math.exp(-epoch / 8 * lids[epoch] / 4.0)
        for index, views in itertools.islice(asked, 5):
            logits = net(views)
            own = F.one_hot(logits.argmax(dim=1), 3)
            sgd.zero_grad()
            F.cross_entropy(logits, alpha * F.one_hot(data.labels[index], 3) + (1 - alpha) * own).backward()
            sgd.step()
    for name, tensor in state.nets[0].state_dict().items():
        torch.testing.assert_close(tensor, net.state_dict()[name])


def test_its_only_phase_is_training() -> None:
    method_checks.assert_phases_add_up(METHOD)
    assert [phase.name for phase in METHOD.phases(D2LSettings())] == ["train"]


@pytest.mark.parametrize("turning", [False, True])
def test_resumed_it_continues_to_the_bit(turning: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the state is saved just before the turn, and after it."""
    if turning:
        written_lids(monkeypatch, [5.0, 4.0, 4.1, 4.0, 6.0, 5.0, 4.0, 7.0])
    state = method_checks.assert_resumes(METHOD, D2LSettings(**FIELDS, **EARLY))
    assert int(state.buffers[TURN]) == 4 or not turning


def test_it_trains_on_odd_data() -> None:
    method_checks.assert_trains_on_odd_data(METHOD, **FIELDS, **EARLY)
    s, data = D2LSettings(**FIELDS, **EARLY), TinyData()
    nets: list[nn.Module] = [Undecided(net) for net in tiny_nets(num_nets=1)]
    state = start(METHOD, s, data, nets=nets)
    list(fit(METHOD, state, data, s))
    assert copied(state.buffers)[LIDS].isfinite().all()
