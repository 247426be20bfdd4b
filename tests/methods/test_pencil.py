"""P-correction. Oracles: loops and autograd, fixed points by hand, cross-entropy in the first stage."""

import itertools
import math
from typing import Any

import oracles
import pytest
import torch
from method_checks import (
    SHORT,
    assert_phases_add_up,
    assert_published_fit,
    assert_resumes,
    assert_trains_on_odd_data,
)
from tiny import NUM_CLASSES, TinyData, TinyNet, copied, fit, record, start
from torch import Tensor
from torch.nn import functional as F

from dividemix.methods import METHODS
from dividemix.methods.method import MethodSettings
from dividemix.methods.pencil import (
    METHOD,
    PUBLISHED,
    PencilSettings,
    label_gradient,
    label_logits,
    label_rate,
    pencil_loss,
)


def settings_of(**fields: Any) -> PencilSettings:
    """8 epochs: 2 with the given labels, 3 that correct, 3 final ones."""
    return PencilSettings(**{**SHORT, "final_from": 0.6, **fields})


def drawn() -> tuple[Tensor, Tensor, Tensor]:
    """Logits, v and labels."""
    generator = torch.Generator().manual_seed(1)
    logits, v = 2 * torch.randn(2, 7, 4, generator=generator, dtype=torch.float64)
    return logits, v, torch.randint(4, (7,), generator=generator)


def terms_by_loops(logits: oracles.Rows, v: oracles.Rows) -> tuple[float, float]:
    """L_c and L_e."""
    l_c = l_e = 0.0
    for row, label_row in zip(logits, v, strict=True):
        for log_p, log_d in zip(oracles.log_softmax(row), oracles.log_softmax(label_row), strict=True):
            l_c += math.exp(log_p) * (log_p - log_d) / len(logits)
            l_e -= math.exp(log_p) * log_p / len(logits)
    return l_c, l_e


# The losses and the gradient of v.


@pytest.mark.parametrize("beta", [0.0, 0.8])
def test_the_loss_of_the_net_is_that_of_the_equation(beta: float) -> None:
    logits, v, _ = drawn()
    l_c, l_e = terms_by_loops(logits.tolist(), v.tolist())
    assert pencil_loss(logits, v, beta).item() == pytest.approx((l_c + beta * l_e) / 4, rel=1e-12)


@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.4])
def test_the_gradient_of_v_is_that_of_the_whole_loss(alpha: float) -> None:
    """Autograd of the whole loss, written as the equations have it; L_o has no gradient for the net."""
    logits, v, labels = (tensor.clone() for tensor in drawn())
    logits.requires_grad_()
    v.requires_grad_()
    p, d = logits.softmax(dim=1), v.softmax(dim=1)
    l_c = (p * (p.log() - d.log())).sum(dim=1).mean()
    l_e = -(p * p.log()).sum(dim=1).mean()
    l_o = -d.log_softmax(dim=1)[torch.arange(7), labels].mean()
    by_net, by_v = torch.autograd.grad(l_c / 4 + alpha * l_o + 0.8 * l_e / 4, (logits, v))
    torch.testing.assert_close(label_gradient(logits, v, labels, alpha), by_v)
    (found,) = torch.autograd.grad(pencil_loss(logits, v.detach(), 0.8), logits)
    torch.testing.assert_close(found, by_net)


def test_without_alpha_labels_become_the_predictions() -> None:
    logits, v, labels = drawn()
    for _ in range(4000):
        v = v - 5 * label_gradient(logits, v, labels, 0.0)
    torch.testing.assert_close(v.softmax(dim=1), logits.softmax(dim=1), rtol=0, atol=1e-3)


@pytest.mark.parametrize(
    ("num_classes", "alpha", "mass"),
    [(10, 0.1, 0.896), (10, 0.4, 0.268), (14, 0.08, 0.833), (100, 0.1, 0.101), (100, 0.01, 0.984)],
)
def test_where_a_label_ends_when_the_net_is_sure_of_another_class(num_classes: int, alpha: float, mass: float) -> None:
    """By hand: if d is m for the net's class, 1 - m for the given one, it rests at alpha C m (1 + s_m - s_given) = 1.

    s is the softmax of d. From alpha 2 / C on, m is below 1/2: no label flips.
    """
    m, total = mass, math.exp(mass) + math.exp(1 - mass) + num_classes - 2
    s_net, s_given = math.exp(m) / total, math.exp(1 - m) / total
    assert alpha * num_classes * m * (1 + s_net - s_given) == pytest.approx(1, abs=6e-3)
    v = F.one_hot(torch.tensor([0]), num_classes).double() * 10
    logits = 50 * F.one_hot(torch.tensor([1]), num_classes).double()
    for _ in range(6000):
        v = v - 0.5 * num_classes * label_gradient(logits, v, torch.tensor([0]), alpha)
    found = v.softmax(dim=1)[0, 1].item()
    if (num_classes, alpha) == (100, 0.01):  # it goes beyond, and takes a long time to come back
        assert found > mass
    else:
        assert found == pytest.approx(mass, abs=4e-3)
    assert (found > 0.5) == (alpha * num_classes < 2)


def test_labels_begin_almost_sure() -> None:
    for num_classes, largest in ((10, 0.9996), (100, 0.9955)):
        state = start(METHOD, settings_of(), TinyData())
        v = label_logits(state, torch.tensor([1, 0]), num_classes)
        assert v.shape == (2, num_classes)
        assert v.argmax(dim=1).tolist() == [1, 0]
        assert v.softmax(dim=1).max(dim=1).values.tolist() == pytest.approx([largest] * 2, abs=5e-5)


def test_the_rate_of_labels_covers_the_same_way_in_any_number_of_epochs() -> None:
    """The sum of lambda / (B C) over the visits of a sample is 40, unless lambda is set."""
    for epochs in (8, 320):
        s = settings_of(epochs=epochs)
        num_visits = s.final_epoch - s.num_before
        assert label_rate(s, 100, 10) * num_visits / (8 * 10) == pytest.approx(40)
        few = settings_of(epochs=epochs, balanced_batches=5)  # 40 of 100 samples an epoch
        assert label_rate(few, 100, 10) * 0.4 * num_visits / (8 * 10) == pytest.approx(40)
    assert label_rate(settings_of(label_lr=600.0), 100, 10) == 600


# A whole training, watched.


def test_every_epoch_has_the_loss_and_the_labels_of_the_equations() -> None:
    """From the recorded logits alone, with a loop over the samples of a step for v."""
    s, data = settings_of(label_lr=30.0, compatibility_weight=0.2), TinyData(41)
    state = start(METHOD, s, data)
    epochs = fit(METHOD, state, data, s)
    v = 10.0 * F.one_hot(data.labels, NUM_CLASSES).double()
    for epoch in range(8):
        data.asked.clear()
        report, calls = record(state, epochs)
        assert report.phase == ("given" if epoch < 2 else "correct" if epoch < 5 else "final")
        losses = []
        for call, index in zip(calls, data.asked, strict=True):
            if epoch < 2:
                losses.append(F.cross_entropy(call.logits, data.labels[index]).item())
                continue
            l_c, l_e = terms_by_loops(call.logits.tolist(), v[index].tolist())
            losses.append((l_c + (s.entropy_weight * l_e if epoch < 5 else 0.0)) / NUM_CLASSES)
            if epoch < 5:
                slope = label_gradient(call.logits, v[index], data.labels[index], 0.2)
                for sample, row in zip(index.tolist(), slope, strict=True):
                    v[sample] -= 30.0 * row
        assert report.losses["loss"] == pytest.approx([math.fsum(losses) / len(losses)], rel=1e-4)
        if epoch < 2:
            assert state.samples == {}
        else:
            torch.testing.assert_close(state.samples["label_logits"].double(), v, rtol=0, atol=1e-4)
        assert ("noise_rate" in report.figures) == (2 <= epoch < 5)


def test_with_rate_0_labels_stay_as_they_are_given() -> None:
    s, data = settings_of(label_lr=0.0), TinyData()
    state = start(METHOD, s, data)
    for _ in fit(METHOD, state, data, s):
        pass
    assert torch.equal(state.samples["label_logits"], 10.0 * F.one_hot(data.labels, NUM_CLASSES))


def test_the_final_stage_leaves_labels_alone() -> None:
    s, data = settings_of(), TinyData()
    state = start(METHOD, s, data)
    for _ in itertools.islice(fit(METHOD, state, data, s), 5):
        pass
    before = copied(state.samples)["label_logits"]
    assert not torch.equal(before, 10.0 * F.one_hot(data.labels, NUM_CLASSES))
    for _ in fit(METHOD, state, data, s):
        assert torch.equal(state.samples["label_logits"], before)


def test_the_first_stage_is_cross_entropy_to_the_bit() -> None:
    s = settings_of(correct_from=1.0, final_from=1.0)
    plain, data = MethodSettings(**{**SHORT, "lr_drop_epoch": 100}), TinyData()
    other = start(METHODS["cross_entropy"], plain, data)
    losses = [report.losses for report in fit(METHODS["cross_entropy"], other, data, plain)]
    state = start(METHOD, s, data)
    assert losses == [report.losses for report in fit(METHOD, state, data, s)]
    for name, tensor in other.tensors().items():
        assert torch.equal(tensor, state.tensors()[name]), name


@pytest.mark.slow
def test_it_corrects_most_wrong_labels_of_separable_data() -> None:
    """Sample i of TinyData is of class i % 3. Of five trainings one loses a class, as this method may: all count."""
    true, before, after = torch.arange(120) % NUM_CLASSES, 0, 0
    for seed in range(5):
        s, data = settings_of(epochs=40, lr=0.1, seed=seed), TinyData(120, seed=seed)
        state = start(METHOD, s, data, nets=[TinyNet(100 + seed)])
        for _ in fit(METHOD, state, data, s):
            pass
        before += int((data.labels != true).sum())
        after += int((state.samples["label_logits"].argmax(dim=1) != true).sum())
    assert after < before / 2


def test_its_opinion_is_the_share_of_the_given_label() -> None:
    s, data = settings_of(), TinyData()
    state = start(METHOD, s, data)
    for _ in fit(METHOD, state, data, s):
        pass
    judged, d = METHOD.judge(state, data, s), state.samples["label_logits"].double().softmax(dim=1)
    for i, label in enumerate(data.labels.tolist()):
        assert judged.clean_prob[0, i].item() == pytest.approx(float(d[i, label]))


# What every method must stand.


@pytest.mark.parametrize("fields", [{}, {"balanced_batches": 2}], ids=str)
def test_resumed_it_continues_to_the_bit(fields: dict[str, Any]) -> None:
    assert_resumes(METHOD, settings_of(**fields))


@pytest.mark.parametrize(
    "fields", [{}, {"balanced_batches": 1}, {"correct_from": 0.0, "final_from": 0.0}, {"label_lr": 1e6}], ids=str
)
def test_it_stands_degenerate_data(fields: dict[str, Any]) -> None:
    assert_trains_on_odd_data(METHOD, **fields)


def test_its_phases_and_published_settings() -> None:
    assert_phases_add_up(METHOD)
    assert_published_fit(METHOD, PUBLISHED)
