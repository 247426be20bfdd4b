"""`robust`, watched from outside. Oracles: the loops of oracles.py; DivideMix itself where the recipe is off."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import oracles
import pytest
import tiny
import torch
from tiny import (
    NUM_CLASSES,
    MixEpoch,
    TinyData,
    Undecided,
    assert_steps_descend,
    assert_trains,
    copied,
    losses_of,
    record,
    tiny_nets,
)
from torch import nn

from dividemix.engine.state import State
from dividemix.errors import DegenerateDivisionWarning, InputError
from dividemix.methods import METHODS
from dividemix.methods.dividemix import DivideMixSettings
from dividemix.methods.method import EpochReport
from dividemix.methods.robust import METHOD, RobustSettings, noise_weight
from dividemix.settings import fields_of

# Plain gradient descent, so that a step is -lr times the gradient.
TINY: dict[str, Any] = {
    "epochs": 6,
    "warmup_epochs": 2,
    "batch_size": 4,
    "lr": 0.05,
    "momentum": 0.0,
    "weight_decay": 0.0,
    "rampup_epochs": 4,
    "seed": 3,
}
# The defaults of DivideMix, and the recipe's own parts switched off: each test switches on what it is about.
OFF: dict[str, Any] = {
    "confidence_penalty": False,
    "clean_threshold": 0.5,
    "loss_window": 1,
    "alpha": 4.0,
    "norm_per_view": True,
    "labeled_only": False,
    "division": "global",
    "keep_plausible": False,
    "keep_all_up_to": 0.0,
    "lambda_u_auto": False,
}


def settings_of(**fields: Any) -> RobustSettings:
    return RobustSettings(**{**TINY, **OFF, **fields})


def start(s: RobustSettings, data: TinyData, *, nets: list[nn.Module] | None = None) -> State:
    return tiny.start(METHOD, s, data, nets=nets)


def fit(state: State, data: TinyData, s: RobustSettings) -> Iterator[EpochReport]:
    return tiny.fit(METHOD, state, data, s)


def mix_epoch(*, noise: float = 0.3, **fields: Any) -> MixEpoch:
    return tiny.mix_epoch(METHOD, settings_of(**fields), noise=noise)


def weighted(lambda_u: float, noise_rate: float) -> float:
    """A share of lambda_u that grows from 25 % to 50 % estimated noise."""
    return lambda_u * min(1.0, max(0.0, 4 * noise_rate - 1))


# Settings.


def test_its_settings_are_those_of_dividemix_and_its_own() -> None:
    assert fields_of(RobustSettings).keys() - fields_of(DivideMixSettings).keys() == {
        "division",
        "keep_plausible",
        "keep_all_up_to",
        "lambda_u_auto",
    }
    assert list(fields_of(RobustSettings))[: len(fields_of(DivideMixSettings))] == list(fields_of(DivideMixSettings))


def test_what_it_shares_with_dividemix_differs_in_defaults_and_not_in_what_is_allowed() -> None:
    for name, field in fields_of(DivideMixSettings).items():
        other = fields_of(RobustSettings)[name]
        assert other == replace(field, default=other.default, doc=other.doc)


def test_the_recipe_is_on_by_default() -> None:
    s = RobustSettings()
    assert (s.warmup_epochs, s.confidence_penalty, s.clean_threshold, s.loss_window) == (1, True, 0.15, 5)
    assert (s.alpha, s.norm_per_view, s.labeled_only) == (0.5, False, True)
    assert (s.division, s.keep_plausible, s.keep_all_up_to, s.lambda_u_auto) == ("global", True, 0.125, True)


def test_labeled_only_needs_lambda_u_zero_or_one_that_may_fall_to_zero() -> None:
    assert RobustSettings(labeled_only=True, lambda_u=25.0, lambda_u_auto=True).labeled_only
    assert RobustSettings(labeled_only=True, lambda_u=0.0, lambda_u_auto=False).labeled_only
    with pytest.raises(InputError, match=r"labeled_only drops .*: set lambda_u to 0$"):
        RobustSettings(labeled_only=True, lambda_u=25.0, lambda_u_auto=False)


# The recipe switched off.


@pytest.mark.parametrize("fields", [{}, {"loss_window": 2, "mixture": "beta"}, {"co_training": False}], ids=str)
def test_with_all_its_parts_off_it_is_dividemix_to_the_bit(fields: dict[str, Any]) -> None:
    data, s = TinyData(), settings_of(**fields)
    state = start(s, data)
    reports = list(fit(state, data, s))
    plain, paper = DivideMixSettings(**TINY, **fields), METHODS["dividemix"]
    expected = tiny.start(paper, plain, data)
    for report, other in zip(reports, tiny.fit(paper, expected, data, plain), strict=True):
        assert (report.phase, report.losses) == (other.phase, other.losses)
        assert report.figures.get("lambda_u") == other.figures.get("lambda_u")
        for division, same in zip(report.divisions, other.divisions, strict=True):
            assert torch.equal(division.clean_prob, same.clean_prob)
            assert torch.equal(division.labeled, same.labeled)
    tensors = expected.tensors()
    assert state.tensors().keys() == tensors.keys()
    assert all(torch.equal(tensor, tensors[name]) for name, tensor in state.tensors().items())


# Divisions.


@pytest.fixture(scope="module")
def watched() -> MixEpoch:
    return mix_epoch()


def test_the_noise_rate_is_that_of_the_nets_that_divide(watched: MixEpoch) -> None:
    """Their predictions are those of the co-divide pass: no forward is made for them."""
    labels, rates = watched.data.labels.tolist(), []
    assert [call.kind for call in watched.co_divide] == [(k, len(labels), "eval", "no grad") for k in range(2)]
    for k, division in enumerate(watched.report.divisions):
        rows = watched.co_divide[1 - k].logits.tolist()
        predictions = [row.index(max(row)) for row in rows]
        rates.append(oracles.noise_rate(division.clean_prob.tolist(), predictions, labels))
    assert rates[0] != rates[1]
    assert watched.report.figures["noise_rate"] == pytest.approx(sum(rates) / 2, rel=1e-9)


@pytest.mark.parametrize("window", [1, 3])
def test_keep_plausible_leaves_a_label_at_least_what_both_nets_find_plausible(window: int) -> None:
    """Oracle: the mixture's posterior over the averaged losses, or the average plausibility where that is larger."""
    s, data = settings_of(epochs=6, loss_window=window, keep_plausible=True), TinyData()
    state = start(s, data)
    labels = data.labels.tolist()
    losses: list[list[list[float]]] = [[], []]
    plausible: list[list[float]] = []  # of each net in each epoch
    epochs = fit(state, data, s)
    while state.epoch < s.epochs:
        report, calls = record(state, epochs)
        if report.phase == "warmup":
            continue
        for k in range(2):
            logits = next(call for call in calls if call.k == k and len(call.x) == len(labels)).logits.tolist()
            probs = [[math.exp(value) for value in oracles.log_softmax(row)] for row in logits]
            losses[k].append(oracles.min_max(losses_of(report)[k]))
            plausible.append(oracles.plausibility(probs, labels))
        least = [math.fsum(values) / len(values) for values in zip(*plausible[-2 * window :], strict=True)]
        for k, division in enumerate(report.divisions):
            recent = losses[1 - k][-window:]
            averaged = [math.fsum(values) / len(values) for values in zip(*recent, strict=True)]
            posteriors = oracles.low_posterior(averaged)
            expected = [max(pair) for pair in zip(posteriors, least, strict=True)]
            assert division.clean_prob.tolist() == pytest.approx(expected, abs=1e-6)
            assert expected != posteriors
    if window == 1:
        assert state.samples == {}
    else:
        assert state.samples["plausibility"].shape == (len(labels), window)


@pytest.mark.parametrize(("keep_plausible", "window"), [(False, 1), (True, 1), (False, 2), (True, 2)])
def test_what_is_averaged_is_kept_for_each_sample_and_nothing_else(keep_plausible: bool, window: int) -> None:
    s, data = settings_of(keep_plausible=keep_plausible, loss_window=window), TinyData()
    state = start(s, data)
    names = {"losses", *(["plausibility"] if keep_plausible else [])} if window > 1 else set()
    assert state.samples.keys() == names
    assert all(tensor.shape[-1] == 0 for tensor in state.samples.values())
    list(fit(state, data, s))
    shapes = {"losses": (len(data.labels), 2, 2), "plausibility": (len(data.labels), 2)}
    assert {name: tuple(tensor.shape) for name, tensor in state.samples.items()} == {n: shapes[n] for n in names}
    assert all(tensor.dtype == torch.float64 for tensor in state.samples.values())


def test_one_net_that_is_its_own_peer_judges_plausibility_alone() -> None:
    s, data = settings_of(co_training=False, keep_plausible=True, loss_window=2), TinyData()
    state = start(s, data)
    list(itertools.islice(fit(state, data, s), 4))
    history = state.samples["plausibility"]
    assert history.shape == (len(data.labels), 2)
    assert ((history > 0) & (history < 1)).all()


@pytest.mark.parametrize("mixture", ["gaussian", "beta"])
def test_per_class_each_given_label_has_its_own_mixture(mixture: str) -> None:
    """Oracle: the loops of EM, on the other net's losses within each class."""
    epoch = mix_epoch(mixture=mixture, division="per_class")
    labels = epoch.data.labels.tolist()
    for k, made in enumerate(epoch.report.divisions):
        losses = oracles.min_max(losses_of(epoch.report)[1 - k])
        for c in range(NUM_CLASSES):
            members = [i for i, label in enumerate(labels) if label == c]
            values = [losses[i] for i in members]
            if mixture == "beta":
                expected = oracles.beta_low_posterior(oracles.beta_expectation_maximisation(values), values)
            else:
                expected = oracles.low_posterior(values)
            assert [float(made.clean_prob[i]) for i in members] == pytest.approx(expected, abs=1e-6)
        assert [share for share, _ in made.mixtures] == [labels.count(c) / len(labels) for c in range(NUM_CLASSES)]


def test_globally_the_beta_mixture_divides() -> None:
    epoch = mix_epoch(mixture="beta")
    for k, made in enumerate(epoch.report.divisions):
        values = oracles.min_max(losses_of(epoch.report)[1 - k])
        expected = oracles.beta_low_posterior(oracles.beta_expectation_maximisation(values), values)
        assert made.clean_prob.tolist() == pytest.approx(expected, abs=1e-6)


# Steps, and lambda_u by the estimated noise.


STEP_SETTINGS: list[dict[str, Any]] = [
    {"mixture": "beta", "division": "per_class"},
    {"lambda_u_auto": True, "noise": 0.5, "rampup_epochs": 0},
    {"keep_plausible": True, "loss_window": 2, "alpha": 0.5, "norm_per_view": False},
]


@pytest.mark.parametrize("fields", STEP_SETTINGS, ids=str)
def test_every_step_descends_the_total_loss(fields: dict[str, Any]) -> None:
    epoch = mix_epoch(**fields)
    lambda_u = epoch.s.lambda_u
    if fields.get("lambda_u_auto"):
        lambda_u = weighted(lambda_u, epoch.report.figures["noise_rate"])
        assert lambda_u > 0
    assert_steps_descend(epoch, lambda_u)


@pytest.mark.parametrize(
    ("noise_rate", "expected"),
    [(0.0, 0.0), (0.2, 0.0), (0.25, 0.0), (0.3, 0.2), (0.375, 0.5), (0.45, 0.8), (0.5, 1.0), (0.9, 1.0), (1.0, 1.0)],
)
def test_noise_weight(noise_rate: float, expected: float) -> None:
    """Oracle: the rule by hand, 0 to 25 %, all from 50 %, four times the distance between."""
    weight = noise_weight(noise_rate)
    assert isinstance(weight, float)
    assert weight == pytest.approx(expected, abs=1e-12)


def test_lambda_u_follows_the_estimated_noise() -> None:
    shares = []
    for noise in (0.0, 0.5, 0.6):
        report = mix_epoch(lambda_u_auto=True, lambda_u=8.0, noise=noise).report
        assert report.figures["lambda_u_full"] == pytest.approx(weighted(8.0, report.figures["noise_rate"]), rel=1e-9)
        shares.append(report.figures["lambda_u_full"] / 8)
    assert shares[0] == 0.0
    assert any(0 < share < 1 for share in shares)


def test_lambda_u_is_the_one_that_was_set_unless_it_follows_the_noise(watched: MixEpoch) -> None:
    assert watched.report.figures["lambda_u_full"] == watched.s.lambda_u
    assert watched.report.figures.keys() == {"noise_rate", "lambda_u", "lambda_u_full"}


def test_lambda_u_by_noise_needs_no_state_of_its_own() -> None:
    """Oracle: the training that was never interrupted."""
    s, data = settings_of(lambda_u_auto=True, loss_window=2), TinyData(noise=0.5)
    straight, first, second = (start(s, data) for _ in range(3))
    expected = [(report.figures, report.losses) for report in fit(straight, data, s)]
    found = [(report.figures, report.losses) for report in itertools.islice(fit(first, data, s), 4)]
    second.load(copied(first.tensors()), first.epoch)
    assert found + [(report.figures, report.losses) for report in fit(second, data, s)] == expected


def test_labeled_only_waits_until_the_estimated_noise_makes_lambda_u_zero() -> None:
    shares = set()
    for noise in (0.0, 0.5, 0.6):
        epoch = mix_epoch(labeled_only=True, lambda_u_auto=True, lambda_u=8.0, noise=noise)
        share = 2 if epoch.report.figures["lambda_u_full"] > 0 else 1
        rows = share * epoch.s.num_views * epoch.s.batch_size
        assert {len(step.learn.x) for step in itertools.chain(*epoch.steps)} == {rows}
        shares.add(share)
    assert shares == {1, 2}


@pytest.mark.parametrize("confidence_penalty", [False, True])
def test_its_warm_up_is_that_of_dividemix(confidence_penalty: bool) -> None:
    s, data = settings_of(confidence_penalty=confidence_penalty), TinyData()
    report = next(fit(start(s, data), data, s))
    plain, paper = DivideMixSettings(**TINY, confidence_penalty=confidence_penalty), METHODS["dividemix"]
    expected = next(tiny.fit(paper, tiny.start(paper, plain, data), data, plain))
    assert report.losses == expected.losses
    assert (report.phase, report.selects, report.figures) == ("warmup", False, {})


# Degenerate training.


@pytest.mark.filterwarnings("ignore:every sample passes:dividemix.errors.DegenerateDivisionWarning")
@pytest.mark.parametrize("division", ["global", "per_class"])
def test_equal_losses_keep_every_label(division: str) -> None:
    s, data = settings_of(division=division), TinyData()
    state = start(s, data, nets=[Undecided(net) for net in tiny_nets()])
    with pytest.warns(DegenerateDivisionWarning, match="all losses are equal"):
        reports = assert_trains(METHOD, state, data, s)
    for made in reports[-1].divisions:
        assert made.labeled.tolist() == list(range(len(data.labels)))
        assert made.clean_prob.tolist() == [1.0] * len(data.labels)


@pytest.mark.filterwarnings("ignore::dividemix.errors.DegenerateDivisionWarning")
@pytest.mark.parametrize("division", ["global", "per_class"])
@pytest.mark.parametrize("num_samples", [2, 3, 5])
@pytest.mark.parametrize("threshold", [0.0, 0.5, 1.0])
def test_fewer_samples_than_a_batch(num_samples: int, division: str, threshold: float) -> None:
    """Every batch is full all the same: samples come more than once."""
    s = settings_of(batch_size=8, clean_threshold=threshold, division=division)
    data = TinyData(num_samples)
    assert_trains(METHOD, start(s, data), data, s)
    warm_up_batches = data.asked[:4]  # two nets, two epochs
    assert [len(index) for index in warm_up_batches] == [16] * 4
    mix_rows = {len(index) for index in data.asked[4:]}
    assert mix_rows <= {2 * 8, 4 * 8}


@pytest.mark.filterwarnings("ignore::dividemix.errors.DegenerateDivisionWarning")
@pytest.mark.parametrize("division", ["global", "per_class"])
def test_a_class_with_one_sample(division: str) -> None:
    s, data = settings_of(division=division), TinyData()
    data.labels = torch.arange(len(data.labels)) % 2
    data.labels[7] = 2
    reports = assert_trains(METHOD, start(s, data), data, s)
    if division == "per_class":  # one loss says nothing against its label
        assert all(made.clean_prob[7] == 1 for report in reports[2:] for made in report.divisions)


@pytest.mark.filterwarnings("ignore::dividemix.errors.DegenerateDivisionWarning")
def test_it_trains_with_its_defaults() -> None:
    s, data = RobustSettings(epochs=4, batch_size=4, lr=0.05), TinyData()
    reports = assert_trains(METHOD, start(s, data), data, s)
    assert [report.phase for report in reports] == ["warmup"] + ["mix"] * 3
    assert [report.selects for report in reports] == [False] + [True] * 3
