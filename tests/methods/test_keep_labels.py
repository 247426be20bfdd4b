"""Which labels `robust` keeps. Oracles: loops of EM over all samples and over each class, and a count by hand."""

import math
import warnings
from typing import Any

import numpy as np
import oracles
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import TinyData, fit, start
from torch import Tensor

from dividemix.algorithm.beta_mixture import Betas
from dividemix.algorithm.divide import Mixture
from dividemix.algorithm.settings import MixtureName
from dividemix.engine.state import State
from dividemix.methods.keep_labels import judge, keep_all, noise_rate, opinion, select
from dividemix.methods.robust import METHOD, RobustSettings

MIXTURES: list[MixtureName] = ["gaussian", "beta"]
DIVISIONS = ["global", "per_class"]


def two_humps(seed: int, num_samples: int, num_classes: int) -> tuple[Tensor, Tensor]:
    """Normalised losses of clean and noisy samples, and labels; the classes differ in difficulty."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, num_classes, size=num_samples)
    noisy = rng.random(num_samples) < 0.4
    losses = rng.gamma(2 + labels, 0.1) + noisy * rng.normal(2 + 0.5 * labels, 0.4)
    return torch.tensor(oracles.min_max(losses.tolist()), dtype=torch.float64), torch.from_numpy(labels)


def opinion_of(
    values: Tensor, labels: Tensor, plausible: Tensor | None = None, **fields: Any
) -> tuple[Tensor, list[tuple[float, Mixture]]]:
    """The opinion with these settings; by losses alone unless plausibilities are given."""
    return opinion(values, labels, plausible, RobustSettings(**fields))


def warmed_up(**fields: Any) -> tuple[State, TinyData, RobustSettings]:
    """A state after its warm-up."""
    data = TinyData()
    s = RobustSettings(
        **{"epochs": 4, "warmup_epochs": 2, "batch_size": 4, "lr": 0.05, "clean_threshold": 0.5, **fields}
    )
    state = start(METHOD, s, data)
    epochs = fit(METHOD, state, data, s)
    for _ in range(s.warmup_epochs):
        next(epochs)
    return state, data, s


# opinion: one mixture over all losses, or one for each given label


@pytest.mark.parametrize("seed", range(10))
def test_global_opinion_is_the_low_posterior(seed: int) -> None:
    values, labels = two_humps(seed, 120, 3)
    clean_prob, _ = opinion_of(values, labels, division="global")
    assert clean_prob.dtype == torch.float64
    assert clean_prob.tolist() == pytest.approx(oracles.low_posterior(values.tolist()), abs=1e-6)


@pytest.mark.parametrize("seed", range(10))
def test_per_class_opinion_is_the_low_posterior_within_the_class(seed: int) -> None:
    values, labels = two_humps(seed, 150, 3)
    clean_prob, _ = opinion_of(values, labels, division="per_class")
    expected = oracles.low_posterior_per_class(values.tolist(), labels.tolist())
    assert clean_prob.dtype == torch.float64
    assert clean_prob.tolist() == pytest.approx(expected, abs=1e-6)


def test_global_division_ignores_labels_and_per_class_does_not() -> None:
    values, labels = two_humps(1, 150, 3)
    first, _ = opinion_of(values, labels, division="global")
    assert torch.equal(first, opinion_of(values, labels.flip(0), division="global")[0])
    assert not torch.allclose(first, opinion_of(values, labels, division="per_class")[0], atol=1e-3)


@pytest.mark.parametrize("division", DIVISIONS)
def test_an_opinion_follows_its_sample(division: str) -> None:
    values, labels = two_humps(2, 100, 4)
    order = torch.randperm(100, generator=torch.Generator().manual_seed(1))
    straight, _ = opinion_of(values, labels, division=division)
    shuffled, _ = opinion_of(values[order], labels[order], division=division)
    torch.testing.assert_close(shuffled, straight[order], rtol=0, atol=1e-9)


def test_classes_need_be_neither_contiguous_nor_all_present() -> None:
    values, labels = two_humps(3, 100, 2)
    renamed = torch.where(labels == 0, 7, 90)
    first, _ = opinion_of(values, labels, division="per_class")
    torch.testing.assert_close(opinion_of(values, renamed, division="per_class")[0], first)


def test_a_class_of_one_or_of_equal_values_is_clean_without_a_warning() -> None:
    values, labels = two_humps(4, 60, 2)
    values = torch.cat([values, torch.tensor([0.9, 0.8, 0.8, 0.8], dtype=torch.float64)])
    labels = torch.cat([labels, torch.tensor([2, 3, 3, 3])])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clean_prob, _ = opinion_of(values, labels, division="per_class")
    assert clean_prob[60:].tolist() == [1.0] * 4
    expected = oracles.low_posterior_per_class(values.tolist(), labels.tolist())
    assert clean_prob.tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("mixture", MIXTURES)
@pytest.mark.parametrize("division", DIVISIONS)
@pytest.mark.parametrize("num_samples", [1, 2, 9])
def test_equal_values_are_all_clean_without_a_mixture(num_samples: int, division: str, mixture: MixtureName) -> None:
    values, labels = torch.zeros(num_samples, dtype=torch.float64), torch.arange(num_samples) % 2
    clean_prob, mixtures = opinion_of(values, labels, division=division, mixture=mixture)
    assert clean_prob.tolist() == [1.0] * num_samples
    assert clean_prob.dtype == torch.float64
    assert mixtures == []


@pytest.mark.parametrize("seed", range(5))
def test_the_beta_mixture_takes_the_place_of_the_gaussian_one(seed: int) -> None:
    """Oracle: the EM of Arazo et al. as loops, over all samples and over each class."""
    values, labels = two_humps(seed, 120, 3)
    clean_prob, mixtures = opinion_of(values, labels, division="global", mixture="beta")
    pair = oracles.beta_expectation_maximisation(values.tolist())
    assert clean_prob.tolist() == pytest.approx(oracles.beta_low_posterior(pair, values.tolist()), abs=1e-6)
    assert [type(fitted) for _, fitted in mixtures] == [Betas]
    clean_prob, _ = opinion_of(values, labels, division="per_class", mixture="beta")
    for c in range(3):
        members = values[labels == c].tolist()
        pair = oracles.beta_expectation_maximisation(members)
        expected = oracles.beta_low_posterior(pair, members)
        assert clean_prob[labels == c].tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("mixture", MIXTURES)
def test_the_mixtures_come_with_their_shares(mixture: MixtureName) -> None:
    """The clean probability is theirs; a class without a mixture (the last: equal losses) is in no share."""
    values, labels = two_humps(5, 90, 3)
    values = torch.cat([values, torch.full((10,), 0.3, dtype=torch.float64)])
    labels = torch.cat([labels, torch.full((10,), 3)])
    clean_prob, [(share, fitted)] = opinion_of(values, labels, division="global", mixture=mixture)
    assert share == 1.0
    assert torch.equal(fitted.low_prob(values), clean_prob)

    clean_prob, mixtures = opinion_of(values, labels, division="per_class", mixture=mixture)
    assert [share for share, _ in mixtures] == [labels.eq(c).sum().item() / 100 for c in range(3)]
    for c, (_, fitted) in enumerate(mixtures):
        assert torch.equal(fitted.low_prob(values[labels == c]), clean_prob[labels == c])


def test_mixtures_drawn_together_cover_the_samples_that_have_one() -> None:
    values, labels = two_humps(5, 90, 3)
    values = torch.cat([values, torch.full((10,), 0.3, dtype=torch.float64)])
    labels = torch.cat([labels, torch.full((10,), 3)])
    _, mixtures = opinion_of(values, labels, division="per_class")
    grid = torch.linspace(-1, 2, 3001, dtype=torch.float64)
    drawn = torch.stack([share * fitted.densities(grid).sum(dim=0) for share, fitted in mixtures]).sum(dim=0)
    assert float(torch.trapezoid(drawn, grid)) == pytest.approx(0.9, abs=1e-6)


def test_values_in_one_cluster_are_clean_without_a_mixture() -> None:
    """Averaged over epochs, losses may be closer together than any mixture can separate."""
    values = 0.5 + 0.005 * torch.rand(20, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    clean_prob, mixtures = opinion_of(values, torch.zeros(20, dtype=torch.int64))
    assert clean_prob.tolist() == [1.0] * 20
    assert mixtures == []


@pytest.mark.parametrize("division", DIVISIONS)
def test_a_label_is_at_least_as_clean_as_it_is_plausible(division: str) -> None:
    values, labels = two_humps(6, 80, 3)
    plausible = torch.rand(80, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    by_loss, mixtures = opinion_of(values, labels, division=division)
    found, same_mixtures = opinion_of(values, labels, plausible, division=division)
    assert found.tolist() == [max(pair) for pair in zip(by_loss.tolist(), plausible.tolist(), strict=True)]
    assert [share for share, _ in same_mixtures] == [share for share, _ in mixtures]
    for (_, one), (_, other) in zip(same_mixtures, mixtures, strict=True):
        assert torch.equal(one.low_prob(values), other.low_prob(values))


# noise_rate and keep_all


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40))
def test_noise_rate_is_the_unclean_share_that_is_not_agreed_upon(rows: list[tuple[float, int, int]]) -> None:
    clean_prob, predictions, labels = zip(*rows, strict=True)
    found = noise_rate(torch.tensor(clean_prob, dtype=torch.float64), torch.tensor(predictions), torch.tensor(labels))
    assert isinstance(found, float)
    assert found == pytest.approx(oracles.noise_rate(clean_prob, predictions, labels), abs=1e-12)


def test_hard_but_agreed_samples_are_no_noise() -> None:
    labels = torch.tensor([0, 1, 2, 0])
    assert noise_rate(torch.zeros(4), labels, labels) == 0.0
    assert noise_rate(torch.zeros(4), (labels + 1) % 3, labels) == 1.0
    assert noise_rate(torch.ones(4), (labels + 1) % 3, labels) == 0.0


def test_keep_all_keeps_every_label() -> None:
    division = keep_all(5)
    assert division.labeled.tolist() == [0, 1, 2, 3, 4]
    assert division.unlabeled.tolist() == []
    assert division.labeled.dtype == division.unlabeled.dtype == torch.int64
    assert division.clean_prob.tolist() == [1.0] * 5


# select and judge


def test_every_label_is_kept_where_the_estimated_noise_is_low() -> None:
    """Oracle: the first division without a limit; its estimate stays the same."""
    made = []
    for limit in (0.0, 0.01, 1.0):
        state, data, s = warmed_up(clean_threshold=0.99, keep_plausible=False, keep_all_up_to=limit)
        _, divisions, noise = select(state, data, s)
        made.append((divisions, noise))
    (plain, noise), (above, same_noise), (below, still_same_noise) = made
    assert noise == same_noise == still_same_noise > 0.01
    for k in range(2):
        assert len(plain[k].unlabeled) > 0  # otherwise this shows nothing
        assert torch.equal(plain[k].clean_prob, above[k].clean_prob)  # noise above the limit: nothing is changed
        assert torch.equal(plain[k].labeled, above[k].labeled)
        assert (below[k].clean_prob == 1).all()
        assert below[k].labeled.tolist() == list(range(len(data.labels)))


def test_each_division_is_kept_or_made_by_the_noise_that_its_own_net_estimates() -> None:
    """Oracle: the two rates by loops from what the nets predict; a limit between them keeps one division only."""
    state, data, s = warmed_up(keep_plausible=False, keep_all_up_to=0.0)
    _, divisions, noise = select(state, data, s)
    labels, rates = data.labels.tolist(), []
    for k, division in enumerate(divisions):
        logits = state.nets[1 - k].eval()(data.images).tolist()
        predictions = [row.index(max(row)) for row in logits]
        rates.append(oracles.noise_rate(division.clean_prob.tolist(), predictions, labels))
    assert rates[0] != rates[1]
    assert noise == pytest.approx(sum(rates) / 2, rel=1e-9)
    state, data, s = warmed_up(keep_plausible=False, keep_all_up_to=sum(rates) / 2)
    _, divisions, same_noise = select(state, data, s)
    assert same_noise == noise
    assert [bool((division.clean_prob == 1).all()) for division in divisions] == [rate < noise for rate in rates]


@pytest.mark.parametrize("mixture", MIXTURES)
@pytest.mark.parametrize("division", DIVISIONS)
@pytest.mark.parametrize("keep_plausible", [False, True])
def test_judge_and_select_form_the_same_opinion(keep_plausible: bool, division: str, mixture: MixtureName) -> None:
    """At one and the same state, without a history: net k gets the division that the other net's opinion makes."""
    state, data, s = warmed_up(
        keep_plausible=keep_plausible, division=division, mixture=mixture, loss_window=1, keep_all_up_to=0.0
    )
    judged, by_method = judge(state, data, s), METHOD.judge(state, data, s)
    losses, divisions, _ = select(state, data, s)
    assert judged.clean_prob.shape == (2, len(data.labels))
    torch.testing.assert_close(judged.losses, losses.double(), rtol=0, atol=0)
    for k, made in enumerate(divisions):
        assert torch.equal(judged.clean_prob[1 - k], made.clean_prob)
    assert torch.equal(judged.clean_prob, by_method.clean_prob)
    assert torch.equal(judged.pred_probs, by_method.pred_probs)


def test_judging_uses_the_losses_of_now_and_leaves_the_histories_alone() -> None:
    """Oracle: loops, over the losses of now; training has averaged over its last divisions."""
    state, data, s = warmed_up(loss_window=3, keep_all_up_to=0.0, epochs=5)
    list(fit(METHOD, state, data, s))
    before = {name: tensor.clone() for name, tensor in state.tensors().items()}
    judged, labels = judge(state, data, s), data.labels.tolist()
    plausible = []
    for net in state.nets:
        rows = net.eval()(data.images).tolist()
        probs = [[math.exp(value) for value in oracles.log_softmax(row)] for row in rows]
        plausible.append(oracles.plausibility(probs, labels))
    least = [(a + b) / 2 for a, b in zip(*plausible, strict=True)]
    for losses, clean_prob in zip(judged.losses.tolist(), judged.clean_prob.tolist(), strict=True):
        posteriors = oracles.low_posterior(oracles.min_max(losses))
        expected = [max(pair) for pair in zip(posteriors, least, strict=True)]
        assert clean_prob == pytest.approx(expected, abs=1e-6)
    assert all(torch.equal(tensor, before[name]) for name, tensor in state.tensors().items())
