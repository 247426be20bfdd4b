"""Iterative-CV. Oracles: predictors that know the truth, a plain loop, Co-teaching, and counts by hand."""

import itertools
from typing import Any

import method_checks
import pytest
import tiny
import torch
from tiny import TinyData, fit, record, same, start, weights_of
from torch import Tensor, nn
from torch.nn import functional as F

from dividemix.engine.state import State
from dividemix.methods import two_nets
from dividemix.methods.incv import (
    AGREEMENT,
    CANDIDATE,
    DISCARDED,
    FOLD,
    LOSSES,
    METHOD,
    NOISE,
    PREDICTED,
    SELECTED,
    STATUS,
    INCVSettings,
    predict,
    select,
    split,
)
from dividemix.methods.restart import keep_first_weights

FIELDS: dict[str, Any] = {"epochs": 10, "batch_size": 4, "lr": 0.05, "lr_drop_epoch": 5}
SHORT: dict[str, Any] = {"num_rounds": 2, "round_share": 0.2}


class Knowing(nn.Module):
    """A net that knows the true classes by the images' centres; its parameter does nothing."""

    def __init__(self, data: TinyData):
        super().__init__()
        self.scale = nn.Parameter(torch.ones((), dtype=torch.float64))
        self.images, self.truth = data.images, torch.arange(len(data.labels)) % tiny.NUM_CLASSES

    def forward(self, images: Tensor) -> Tensor:
        """Logits by the nearest image."""
        nearest = torch.cdist(images.flatten(1), self.images.flatten(1)).argmin(dim=1)
        return 5 * self.scale * F.one_hot(self.truth[nearest], tiny.NUM_CLASSES)


def new_state(num_samples: int = 40, **fields: Any) -> tuple[State, TinyData, INCVSettings]:
    s, data = INCVSettings(**FIELDS | fields), TinyData(num_samples)
    return start(METHOD, s, data), data, s


# Rounds.


def test_a_split_has_two_halves_of_the_candidates() -> None:
    state, _, _ = new_state()
    state.samples[STATUS][:7] = SELECTED
    state.samples[STATUS][7:10] = DISCARDED
    split(state)
    first = state.samples[FOLD].clone()
    assert (first[:10] == -1).all()
    assert first[10:].bincount().tolist() == [15, 15]
    split(state)
    assert not torch.equal(first, state.samples[FOLD])


def test_a_net_that_knows_the_truth_selects_the_right_labels() -> None:
    """Oracle: the truth. The agreement is the share of right labels."""
    s, data = INCVSettings(**FIELDS, **SHORT), TinyData(200)
    truth = torch.arange(200) % tiny.NUM_CLASSES
    right = truth == data.labels
    nets: list[nn.Module] = [Knowing(data), Knowing(data)]
    state = start(METHOD, s, data, nets=nets)
    split(state)
    for k in range(2):
        predict(state, data, k, any_epoch=False)
        tested = state.samples[FOLD] == 1 - k
        assert float(state.buffers[AGREEMENT][k]) == pytest.approx(float(right[tested].double().mean()))
    assert torch.equal(state.samples[PREDICTED], truth)
    select(state, data.labels)
    assert torch.equal(state.samples[STATUS] == SELECTED, right)
    assert (state.samples[STATUS][~right] == CANDIDATE).all()


@pytest.mark.parametrize(("rate", "number"), [(0.0, 0), (0.25, 3), (0.5, 9), (0.6, 11), (0.9, 11)])
def test_with_symmetric_noise_the_largest_losses_are_discarded(rate: float, number: int) -> None:
    """9 of 20 samples in each half agree: floor(9 r) of the 11 others, r = e / (1 - e), at most 2."""
    state, data, _ = new_state()
    state.buffers[NOISE].copy_(torch.tensor([rate, 0.5, 1.0]))
    split(state)
    state.samples[LOSSES] = torch.randperm(40, generator=torch.Generator().manual_seed(3)).float()
    state.samples[PREDICTED] = (data.labels + 1) % 3
    for half in range(2):
        members = (state.samples[FOLD] == half).nonzero().flatten()
        state.samples[PREDICTED][members[:9]] = data.labels[members[:9]]
    select(state, data.labels)
    for half in range(2):
        members = (state.samples[FOLD] == half).nonzero().flatten()
        status, losses = state.samples[STATUS][members], state.samples[LOSSES][members].tolist()
        assert (status[:9] == SELECTED).all()
        worst = sorted(range(9, 20), key=losses.__getitem__, reverse=True)[:number]
        assert sorted((status == DISCARDED).nonzero().flatten().tolist()) == sorted(worst)


def test_nothing_is_discarded_of_other_noise() -> None:
    state, data, _ = new_state()
    state.buffers[NOISE].copy_(torch.tensor([0.5, 1.0, 0.0]))
    split(state)
    select(state, data.labels)
    assert not (state.samples[STATUS] == DISCARDED).any()


def test_of_a_round_the_best_epoch_counts_or_the_last() -> None:
    state, data, _ = new_state()
    split(state)
    predict(state, data, 0, any_epoch=False)
    before = state.samples[PREDICTED].clone()
    state.buffers[AGREEMENT][0] = 0.99  # a better epoch than any later one
    state.nets[0].get_submodule("head").get_parameter("bias").data.copy_(torch.tensor([9.0, 0.0, 0.0]))
    predict(state, data, 0, any_epoch=False)
    assert torch.equal(state.samples[PREDICTED], before)
    predict(state, data, 0, any_epoch=True)
    assert not torch.equal(state.samples[PREDICTED], before)
    assert float(state.buffers[AGREEMENT][0]) < 0.99


def test_each_net_trains_on_the_selected_samples_and_its_half_from_its_first_weights() -> None:
    state, data, s = new_state(**SHORT)
    first = [weights_of(net) for net in state.nets]
    epochs = fit(METHOD, state, data, s)
    for number in range(4):
        selected = set((state.samples[STATUS] == SELECTED).nonzero().flatten().tolist())
        data.asked.clear()
        _, calls = record(state, epochs)
        steps = [call for call in calls if call.with_grad]
        assert all(same(a, b) for a, b in zip(steps[0].weights, first, strict=True)) == (number % 2 == 0)
        for k in range(2):
            own = [index for call, index in zip(steps, data.asked, strict=True) if call.k == k]
            half = set((state.samples[FOLD] == k).nonzero().flatten().tolist())
            assert set(torch.cat(own).tolist()) == half | selected
            assert not half & selected


def test_the_three_groups_are_a_partition_and_the_selected_ones_only_grow() -> None:
    state, data, s = new_state(200, **SHORT, noise_pattern="symmetric")
    selected = torch.zeros(200, dtype=torch.bool)
    for report in fit(METHOD, state, data, s):
        status = state.samples[STATUS]
        assert ((status >= 0) & (status <= 2)).all()
        now = status == SELECTED
        assert (now | ~selected).all()
        assert report.figures["selected"] == pytest.approx(float(now.double().mean()))
        selected = now
    assert 80 < int(selected.sum()) < 200
    assert int((state.samples[STATUS] == DISCARDED).sum()) > 0
    assert 0.1 < float(state.buffers[NOISE][0]) < 0.6


# Co-teaching.


def test_co_teaching_takes_the_selected_samples_then_candidates_too() -> None:
    """Batches of 8, then of 4 more: 20 candidates for 20 selected samples would be 8, but half is the most."""
    state, data, s = new_state(epochs=14, num_rounds=2, round_share=2 / 14)
    keep_first_weights(state)  # as the first epoch does
    state.epoch = 4
    state.samples[STATUS][:20] = SELECTED
    state.buffers[NOISE].copy_(torch.tensor([1 / 3, 1.0, 0.0], dtype=torch.float64))
    sizes, chosen = [], []
    for report in itertools.islice(fit(METHOD, state, data, s), 10):
        assert report.phase == "co_teaching"
        sizes.append({len(index) for index in data.asked})
        chosen.append(set(torch.cat(data.asked).tolist()))
        data.asked.clear()
    assert sizes == [{8}] * 5 + [{12}] * 5  # after 0.4 of the 10 epochs
    assert all(each == set(range(20)) for each in chosen[:5])
    assert all(each > set(range(20)) for each in chosen[5:])


def test_co_teaching_drops_the_noise_left(monkeypatch: pytest.MonkeyPatch) -> None:
    state, data, s = new_state(**SHORT)
    numbers: list[int] = []
    exchanged = two_nets.exchanged_losses

    def watched(logits: list[Tensor], labels: Tensor, num_kept: int) -> list[Tensor]:
        numbers.append(num_kept)
        return exchanged(logits, labels, num_kept)

    monkeypatch.setattr(two_nets, "exchanged_losses", watched)
    for _ in fit(METHOD, state, data, s):
        pass
    rate, alike, _ = state.buffers[NOISE].tolist()
    left = alike * rate**2 / (alike * rate**2 + (1 - rate) ** 2)
    assert numbers[0] == 8  # in its first epoch nothing is dropped
    assert numbers[-1] == round(8 * (1 - left)) < 8


def test_if_nothing_is_selected_all_samples_are_used() -> None:
    state, data, s = new_state(epochs=1)
    assert [phase.num_epochs for phase in METHOD.phases(s)] == [0, 1]
    next(fit(METHOD, state, data, s))
    assert set(torch.cat(data.asked).tolist()) == set(range(40))


def test_its_phases_add_up_and_are_the_published_shares() -> None:
    method_checks.assert_phases_add_up(METHOD)
    assert [phase.num_epochs for phase in METHOD.phases(INCVSettings(epochs=400))] == [200, 200]
    assert [phase.num_epochs for phase in METHOD.phases(INCVSettings(epochs=10))] == [4, 6]


@pytest.mark.parametrize("pattern", ["estimated", "symmetric", "asymmetric"])
def test_resumed_it_continues_to_the_bit(pattern: str) -> None:
    fields: dict[str, Any] = FIELDS | SHORT | {"noise_pattern": pattern}
    method_checks.assert_resumes(METHOD, INCVSettings(**fields))


@pytest.mark.parametrize("pattern", ["estimated", "symmetric"])
def test_it_trains_on_odd_data(pattern: str) -> None:
    method_checks.assert_trains_on_odd_data(METHOD, **FIELDS, noise_pattern=pattern)
    for epochs in (1, 2, 3):
        method_checks.assert_trains_on_odd_data(METHOD, **FIELDS | {"epochs": epochs, "noise_pattern": pattern})
