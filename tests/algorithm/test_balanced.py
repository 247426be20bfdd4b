"""Epochs of class-balanced draws. Oracles: dealing by hand, counts by class, and the training that was not stopped."""

import itertools
import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import NUM_CLASSES, TinyData, copied, fit, start

from dividemix.data.draw import epoch_samples
from dividemix.engine.state import State
from dividemix.errors import InputError
from dividemix.methods import METHODS
from dividemix.methods.dividemix import DivideMixSettings
from dividemix.methods.method import EpochReport
from dividemix.methods.robust import RobustSettings

STEPS, BATCH = 3, 4
DRAWN: dict[str, Any] = {
    "epochs": 5,
    "warmup_epochs": 2,
    "batch_size": BATCH,
    "balanced_batches": STEPS,
    "lr": 0.05,
    "lambda_u": 5.0,
}
PLAUSIBLE = RobustSettings(**DRAWN, loss_window=1, keep_all_up_to=0.0, clean_threshold=0.5, confidence_penalty=False)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def unbalanced() -> TinyData:
    """90 samples, of which class 0 has more than half."""
    data = TinyData(90)
    data.labels = torch.where(torch.arange(90) < 40, 0, data.labels)
    return data


def trained(**fields: Any) -> tuple[TinyData, State, list[EpochReport]]:
    data, s, method = unbalanced(), DivideMixSettings(**{**DRAWN, **fields}), METHODS["dividemix"]
    state = start(method, s, data)
    return data, state, list(fit(method, state, data, s))


def dealt(counts: list[int], num_samples: int) -> list[int]:
    """How many each class gives, one a round as long as it has any; the last round's may be any classes'."""
    given = [0] * len(counts)
    while True:
        able = [c for c, count in enumerate(counts) if given[c] < count]
        if not able or sum(given) + len(able) > num_samples:
            return given
        for c in able:
            given[c] += 1


@settings(deadline=None)
@given(labels=st.lists(st.integers(0, 5), min_size=1, max_size=60), num=st.integers(1, 70), seed=st.integers(0, 2**32))
def test_classes_give_equally_many_as_long_as_they_can(labels: list[int], num: int, seed: int) -> None:
    samples = epoch_samples(torch.tensor(labels), num, generator(seed)).tolist()
    assert len(samples) == len(set(samples)) == min(num, len(labels))
    assert samples == sorted(samples)
    counts = [labels.count(c) for c in range(6)]
    found = [sum(labels[i] == c for i in samples) for c in range(6)]
    for got, least, there in zip(found, dealt(counts, num), counts, strict=True):
        assert least <= got <= min(least + 1, there)


def test_without_a_number_all_samples_come_and_nothing_is_drawn() -> None:
    state = generator()
    assert epoch_samples(torch.tensor([2, 0, 1, 1]), 0, state).tolist() == [0, 1, 2, 3]
    assert torch.equal(state.get_state(), generator().get_state())


def test_every_sample_of_a_class_is_equally_likely() -> None:
    """4,000 draws of 4 of 3 classes: each sample's count within five standard deviations of its class's mean."""
    labels, state = torch.tensor([0] * 10 + [1] * 4 + [2] * 2), generator()
    counts = torch.zeros(16)
    for _ in range(4000):
        counts[epoch_samples(labels, 4, state)] += 1
    for c in range(3):
        mean = counts[labels == c].mean().item()
        error = math.sqrt(mean * (1 - mean / 4000))
        assert (counts[labels == c] - mean).abs().max() < 5 * error


def test_warm_up_takes_its_steps_of_2b_from_a_draw_of_its_own_for_each_net() -> None:
    data, _, _ = trained(epochs=2)
    assert len(data.asked) == 2 * 2 * STEPS  # epochs, nets
    sets = []
    for begin in range(0, len(data.asked), STEPS):
        batches = data.asked[begin : begin + STEPS]
        assert all(len(index) == 2 * BATCH for index in batches)
        index = torch.cat(batches)
        assert len(index.unique()) == len(index) == 2 * BATCH * STEPS
        assert data.labels[index].bincount(minlength=NUM_CLASSES).tolist() == [8, 8, 8]
        sets.append(frozenset(index.tolist()))
    assert len(set(sets)) == len(sets)


def test_only_the_epochs_samples_are_divided_and_trained_on() -> None:
    data, state, reports = trained(epochs=4)
    mixes = [report for report in reports if report.phase == "mix"]
    drawn = []
    for report in mixes:
        first, second = report.divisions
        divided = first.divided.nonzero().squeeze(1)
        assert torch.equal(first.divided, second.divided)
        assert data.labels[divided].bincount(minlength=NUM_CLASSES).tolist() == [4, 4, 4]
        for division in report.divisions:
            assert sorted([*division.labeled.tolist(), *division.unlabeled.tolist()]) == divided.tolist()
            assert (division.clean_prob[division.labeled] >= 0.5).all() or len(division.labeled) == BATCH
            assert (division.clean_prob[division.unlabeled] < 0.5).all()
            assert division.values is not None
            assert len(division.values) == STEPS * BATCH
        assert report.sample_losses is not None
        assert report.sample_losses.shape == (2, STEPS * BATCH)
        drawn.append(frozenset(divided.tolist()))
    assert len(set(drawn)) == len(drawn)
    assert state.samples == {}  # an epoch's losses are of no use to the next one, which has other samples
    steps = [sum(math.ceil(len(d.labeled) / BATCH) for d in report.divisions) for report in mixes]
    asked = iter(data.asked[2 * 2 * STEPS :])
    for num_steps, samples in zip(steps, drawn, strict=True):
        for index in itertools.islice(asked, num_steps):
            assert set(index.tolist()) <= samples
    assert next(asked, None) is None


@pytest.mark.parametrize(("name", "s"), [("dividemix", DivideMixSettings(**DRAWN)), ("robust", PLAUSIBLE)])
@pytest.mark.parametrize("stop", [1, 2, 3, 4])
def test_resumed_it_continues_to_the_bit(stop: int, name: str, s: DivideMixSettings) -> None:
    """With and without plausibility."""
    data, method = unbalanced(), METHODS[name]
    straight, first, second = (start(method, s, data) for _ in range(3))
    expected = [report.losses for report in fit(method, straight, data, s)]
    losses = [report.losses for report in itertools.islice(fit(method, first, data, s), stop)]
    second.load(copied(first.tensors()), first.epoch)
    losses += [report.losses for report in fit(method, second, data, s)]
    assert losses == expected
    for tensor_name, tensor in straight.tensors().items():
        assert torch.equal(tensor, second.tensors()[tensor_name]), tensor_name


def test_more_than_there_is_takes_all() -> None:
    data, _, reports = trained(balanced_batches=40)
    assert all(division.divided.all() for report in reports for division in report.divisions)
    assert len(data.asked[0]) == 2 * BATCH


def test_losses_of_other_samples_are_not_averaged() -> None:
    with pytest.raises(InputError, match=r"loss_window is 5: .*balanced_batches"):
        DivideMixSettings(balanced_batches=3, loss_window=5)
