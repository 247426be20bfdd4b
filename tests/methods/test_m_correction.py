"""M-correction. Oracles: EM and posteriors by loops, the losses of the paper by loops over recorded forwards."""

import math
from typing import Any

import oracles
import pytest
import torch
from method_checks import SHORT, assert_phases_add_up, assert_published_fit, assert_resumes, assert_trains_on_odd_data
from method_checks import started as start
from tiny import Call, TinyData, copied, mixing, record
from torch import Tensor
from torch.nn import functional as F

from dividemix.algorithm.losses import loss_x
from dividemix.errors import DegenerateDivisionWarning
from dividemix.methods import METHODS, loop
from dividemix.methods.m_correction import (
    METHOD,
    PUBLISHED,
    MCorrectionSettings,
    corrected,
    fit_posterior,
    guessed,
    weighed_share,
)
from dividemix.methods.method import EpochReport, TrainingSets

FIELDS: dict[str, Any] = {**SHORT, "epochs": 6, "warmup_share": 0.34}
VARIANTS = ("hard", "soft")


def two_heaps(seed: int = 0) -> Tensor:
    """Losses of 300 clean and 100 noisy samples."""
    generator = torch.Generator().manual_seed(seed)
    heaps = [torch.randn(n, generator=generator, dtype=torch.float64) for n in (300, 100)]
    return torch.cat([(0.5 + 0.2 * heaps[0]).abs(), 3 + 0.5 * heaps[1]])


# The posterior.


def test_the_posterior_is_that_of_em_between_the_percentiles() -> None:
    losses = two_heaps()
    ordered: list[float] = sorted(losses.tolist())
    low, high = ordered[round(0.05 * 399)], ordered[round(0.95 * 399)]

    def scaled(loss: float) -> float:
        return min(max((loss - low - 1e-5) / (high - low + 1e-6), 1e-3), 1 - 1e-3)

    mixture = oracles.beta_expectation_maximisation([scaled(v) for v in losses.tolist() if low <= v <= high])
    clean = oracles.beta_low_posterior(mixture, [scaled(v) for v in losses.tolist()])
    expected = [min(max(1 - value, 1e-4), 1 - 1e-4) for value in clean]
    assert fit_posterior(losses)(losses).tolist() == pytest.approx(expected, abs=1e-4)


def test_it_does_not_fall_as_the_loss_grows_and_tells_the_heaps_apart() -> None:
    posterior = fit_posterior(two_heaps())
    found = posterior(torch.linspace(-1, 9, 1000))
    assert (found.diff() >= 0).all()
    assert ((found >= 1e-4) & (found <= 1 - 1e-4)).all()
    assert posterior(torch.tensor([0.3]))[0] < 0.1
    assert posterior(torch.tensor([3.0]))[0] > 0.9


def test_losses_that_are_all_but_equal_doubt_no_label() -> None:
    with pytest.warns(DegenerateDivisionWarning, match="equal or nearly so"):
        posterior = fit_posterior(torch.full((9,), 0.7))
    assert posterior(torch.tensor([0.1, 7.0])).tolist() == [0, 0]


# Labels and shares.


def test_a_label_that_is_certainly_right_stays_and_one_that_is_wrong_becomes_the_guess() -> None:
    labels, guess = torch.tensor([0, 2]), torch.tensor([[0.1, 0.9, 0.0], [0.5, 0.25, 0.25]])
    given = F.one_hot(labels, 3).float()
    like = torch.zeros(2, 3)
    assert torch.equal(corrected(labels, torch.zeros(2), guess, like), given)
    assert torch.equal(corrected(labels, torch.ones(2), guess, like), guess)
    assert torch.equal(corrected(labels, None, None, like), given)
    between = corrected(labels, torch.tensor([0.25, 0.5]), guess, like)
    torch.testing.assert_close(between, torch.tensor([[0.775, 0.225, 0.0], [0.25, 0.125, 0.625]]))


def test_a_cold_guess_is_the_predicted_class() -> None:
    logits = torch.randn(7, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    torch.testing.assert_close(guessed(logits, 1e-5), guessed(logits, 0.0), rtol=0, atol=1e-9)
    assert torch.equal(guessed(logits, 1.0), F.softmax(logits, dim=1))


def test_the_shares_of_two_mixed_images_are_their_weights_and_have_the_sum_1() -> None:
    wrong, partner = torch.tensor([0.0, 0.5, 0.9, 0.9]), torch.tensor([1, 0, 3, 2])
    shares = weighed_share(wrong, partner)
    torch.testing.assert_close(shares, torch.tensor([2 / 3, 1 / 3, 0.5, 0.5]))
    torch.testing.assert_close(shares + shares[partner], torch.ones(4))


def test_tau_falls_linearly_from_1_to_a_thousandth_at_two_thirds_of_the_epochs() -> None:
    """The released epochs: corrections from 111 on, tau 0.001 at epoch 200."""
    s = MCorrectionSettings(epochs=300, correction="soft")
    assert [phase.num_epochs for phase in METHOD.phases(s)] == [105, 5, 190]
    assert METHOD.temperature(110, s) == 1
    assert METHOD.temperature(110 + 89 // 2, s) == pytest.approx(1 - 0.999 * 44 / 89)
    assert METHOD.temperature(199, s) == METHOD.temperature(299, s) == pytest.approx(0.001)
    assert METHOD.temperature(150, MCorrectionSettings(epochs=300)) == 0


# Steps.


def watched(s: MCorrectionSettings, epoch: int) -> tuple[TinyData, EpochReport, list[Call]]:
    """One step, of all samples, in the epoch after `epoch` epochs."""
    data = TinyData()
    sets = TrainingSets(data)
    state = start(METHOD, s, sets)
    epochs = loop.fit(METHOD, state, sets, s)
    for _ in range(epoch):
        next(epochs)
    data.asked.clear()
    data.views.clear()
    report, calls = record(state, epochs)
    return data, report, calls


def slow_loss(logits: Tensor, targets: list[list[float]]) -> float:
    rows = [oracles.log_softmax(row) for row in logits.tolist()]
    terms = [-math.fsum(t * p for t, p in zip(*pair, strict=True)) for pair in zip(targets, rows, strict=True)]
    return math.fsum(terms) / len(terms)


def one_hot(label: int) -> list[float]:
    return [float(c == label) for c in range(3)]


def mean_of(a: list[float], b: list[float], share: float) -> list[float]:
    return [share * x + (1 - share) * y for x, y in zip(a, b, strict=True)]


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_warm_up_is_mixup(variant: Any) -> None:
    s = MCorrectionSettings(**{**FIELDS, "batch_size": 20, "correction": variant})
    data, report, (learn,) = watched(s, 0)
    assert (report.phase, report.figures) == ("warmup", {})
    partners, lams = mixing(data.views[0], learn.x)
    (lam,) = {round(lam, 9) for lam in lams if not math.isnan(lam)}
    labels = data.labels[data.asked[0]].tolist()
    targets = [mean_of(one_hot(labels[i]), one_hot(labels[j]), lam) for i, j in enumerate(partners)]
    assert report.losses["loss"][0] == pytest.approx(slow_loss(learn.logits, targets), rel=1e-5)
    assert report.losses["loss_reg"] == [0]


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_step_corrects_labels_as_the_equations_say(variant: Any) -> None:
    """B by the losses in evaluation mode, y^ by a forward in training mode, the loss by a forward of the mixture."""
    s = MCorrectionSettings(**{**FIELDS, "batch_size": 20, "correction": variant})
    data, report, (sweep, doubt, guess, learn) = watched(s, 4)
    assert report.phase == "correct"
    assert [call.kind[2:] for call in (sweep, doubt, guess, learn)] == [
        ("eval", "no grad"),
        ("eval", "no grad"),
        ("train", "no grad"),
        ("train", "grad"),
    ]
    x, labels = data.views[0], data.labels[data.asked[0]]
    assert torch.equal(doubt.x, x)
    assert torch.equal(guess.x, x)
    posterior = fit_posterior(F.cross_entropy(sweep.logits, data.labels, reduction="none"))
    B = posterior(F.cross_entropy(doubt.logits, labels, reduction="none")).tolist()
    tau = METHOD.temperature(4, s)
    own = []
    for row in guess.logits.tolist():
        soft = [math.exp(v) for v in oracles.log_softmax([entry / (tau or 1) for entry in row])]
        own.append(soft if variant == "soft" else one_hot(row.index(max(row))))
    refined = [mean_of(own[i], one_hot(int(labels[i])), B[i]) for i in range(40)]
    partners, lams = mixing(x, learn.x)
    if variant == "soft":
        for i, (j, lam) in enumerate(zip(partners, lams, strict=True)):
            assert math.isnan(lam) or lam == pytest.approx((1 - B[i]) / (2 - B[i] - B[j]), abs=1e-6)
        shares = [0.5] * 40
    else:
        (lam,) = {round(lam, 9) for lam in lams if not math.isnan(lam)}
        shares = [lam] * 40
    targets = [mean_of(refined[i], refined[j], shares[i]) for i, j in enumerate(partners)]
    assert report.losses["loss"][0] == pytest.approx(slow_loss(learn.logits, targets), rel=1e-5)
    assert report.losses["loss_reg"][0] == pytest.approx(oracles.loss_reg(learn.logits.tolist()), rel=1e-4)
    assert 0 < report.figures["noise_rate"] < 1


def test_without_doubt_and_mixing_the_loss_is_cross_entropy() -> None:
    logits = torch.randn(6, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    labels, own = torch.tensor([0, 1, 2, 0, 1, 2]), guessed(logits, 0.0)
    doubted = corrected(labels, torch.ones(6, dtype=torch.float64), own, logits)
    torch.testing.assert_close(loss_x(logits, doubted), F.cross_entropy(logits, logits.argmax(dim=1)))
    kept = corrected(labels, torch.zeros(6, dtype=torch.float64), own, logits)
    torch.testing.assert_close(loss_x(logits, kept), F.cross_entropy(logits, labels))


# The whole.


def test_its_opinion_is_the_posterior_of_the_small_loss_component() -> None:
    s, data = MCorrectionSettings(**FIELDS), TinyData()
    sets = TrainingSets(data)
    state = start(METHOD, s, sets)
    list(loop.fit(METHOD, state, sets, s))
    judged = METHOD.judge(state, data, s)
    order = judged.losses[0].argsort()
    assert (judged.clean_prob[0][order].diff() <= 0).all()
    assert judged.clean_prob[0].min() < 0.5 < judged.clean_prob[0].max()


@pytest.mark.parametrize("variant", VARIANTS)
def test_resumed_it_continues_to_the_bit(variant: Any) -> None:
    assert_resumes(METHOD, MCorrectionSettings(**FIELDS, correction=variant), TrainingSets(TinyData()))


def test_resumed_in_its_middle_phase_it_continues_to_the_bit() -> None:
    s = MCorrectionSettings(**{**FIELDS, "epochs": 90, "warmup_share": 1 / 90, "batch_size": 20}, correction="soft")
    assert [phase.num_epochs for phase in METHOD.phases(s)] == [1, 2, 87]
    sets = TrainingSets(TinyData())
    straight, first, second = (start(METHOD, s, sets) for _ in range(3))
    expected = [next(loop.fit(METHOD, straight, sets, s)).losses for _ in range(4)]
    losses = [next(loop.fit(METHOD, first, sets, s)).losses for _ in range(2)]
    second.load(copied(first.tensors()), first.epoch)
    report = next(loop.fit(METHOD, second, sets, s))
    assert (report.phase, report.losses["loss_reg"]) == ("dynamic", [0])
    losses += [report.losses, next(loop.fit(METHOD, second, sets, s)).losses]
    assert losses == expected


@pytest.mark.filterwarnings("ignore::dividemix.errors.DegenerateDivisionWarning")
@pytest.mark.parametrize("variant", VARIANTS)
def test_it_trains_anything(variant: Any) -> None:
    assert_trains_on_odd_data(METHOD, **FIELDS, correction=variant)


def test_it_is_a_method_with_phases_for_any_number_of_epochs() -> None:
    assert METHODS["m_correction"] is METHOD
    for variant in VARIANTS:
        assert_phases_add_up(METHOD, correction=variant)
    assert_published_fit(METHOD, PUBLISHED)
