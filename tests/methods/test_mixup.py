"""Mixup. Oracles: a loop over rows, cross-entropy where nothing is mixed, the mean and variance of Beta."""

import math

import numpy as np
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
from tiny import TinyData, fit, mixing, record, start
from torch.nn import functional as F

from dividemix.methods import METHODS
from dividemix.methods.method import MethodSettings
from dividemix.methods.mixup import METHOD, PUBLISHED, MixupSettings, draw_mixing, mixed_loss


def drawn(num_rows: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Logits, labels and a permutation."""
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(num_rows, 3, generator=generator, dtype=torch.float64)
    labels = torch.randint(3, (num_rows,), generator=generator)
    return logits, labels, torch.randperm(num_rows, generator=generator)


def test_with_alpha_0_it_is_cross_entropy_to_the_bit() -> None:
    s, plain, data = MixupSettings(**SHORT, alpha=0.0), MethodSettings(**SHORT), TinyData()
    state, other = start(METHOD, s, data), start(METHODS["cross_entropy"], plain, data)
    losses = [report.losses for report in fit(METHOD, state, data, s)]
    assert losses == [report.losses for report in fit(METHODS["cross_entropy"], other, data, plain)]
    for name, tensor in other.tensors().items():
        assert torch.equal(tensor, state.tensors()[name]), name


def test_the_loss_is_soft_cross_entropy_with_the_mixed_target() -> None:
    logits, labels, partner = drawn(7)
    for lam in (0.0, 0.3, 0.5, 1.0):
        targets = [[0.0] * 3 for _ in range(7)]
        for row in range(7):
            targets[row][int(labels[row])] += lam
            targets[row][int(labels[partner[row]])] += 1 - lam
        expected = oracles.loss_x(logits.tolist(), targets)
        assert mixed_loss(logits, labels, labels[partner], lam).item() == pytest.approx(expected, rel=1e-12)


def test_partners_that_are_the_rows_themselves_or_lambda_1_give_cross_entropy() -> None:
    logits, labels, partner = drawn(7)
    expected = F.cross_entropy(logits, labels)
    torch.testing.assert_close(mixed_loss(logits, labels, labels, 0.3), expected)
    assert torch.equal(mixed_loss(logits, labels, labels[partner], 1.0), expected)


def test_lambda_and_a_permutation_or_their_opposites_mix_the_same_pairs() -> None:
    """(lambda, pi) to (1 - lambda, inverse of pi) permutes the rows, so that the mean loss stays."""
    logits_of = torch.nn.Linear(4, 3, dtype=torch.float64)
    _, labels, partner = drawn(7)
    x = torch.randn(7, 4, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    inverse = partner.argsort()
    one = mixed_loss(logits_of(torch.lerp(x[partner], x, 0.3)), labels, labels[partner], 0.3)
    two = mixed_loss(logits_of(torch.lerp(x[inverse], x, 0.7)), labels, labels[inverse], 0.7)
    torch.testing.assert_close(one, two)


def test_lambda_is_from_beta_and_may_be_below_one_half() -> None:
    generator = torch.Generator().manual_seed(0)
    for alpha in (0.5, 32.0):
        lams = np.array([draw_mixing(4, alpha, generator)[1] for _ in range(4000)])
        variance = 1 / (4 * (2 * alpha + 1))
        assert lams.mean() == pytest.approx(0.5, abs=4 * math.sqrt(variance / 4000))
        assert lams.var() == pytest.approx(variance, rel=0.1)
        assert 0.4 < (lams < 0.5).mean() < 0.6


def test_every_step_mixes_its_views_with_one_lambda_and_descends_that_loss() -> None:
    """What goes into the net is a mixture of the views; the mean loss is that of the equation."""
    s, data = MixupSettings(**SHORT), TinyData()
    state = start(METHOD, s, data)
    report, calls = record(state, fit(METHOD, state, data, s))
    losses, lams = [], set()
    for call, index, views in zip(calls, data.asked, data.views, strict=True):
        assert call.training
        partners, found = mixing(views, call.x)
        assert sorted(partners) == list(range(8))
        known = [lam for lam in found if not math.isnan(lam)]
        assert max(known) - min(known) < 1e-9
        lams.add(known[0])
        given = data.labels[index]
        losses.append(mixed_loss(call.logits, given, given[torch.tensor(partners)], known[0]).item())
    assert len(lams) == len(calls) == 5
    assert report.losses["loss"] == pytest.approx([math.fsum(losses) / 5], rel=1e-6)


def test_resumed_it_continues_to_the_bit() -> None:
    assert_resumes(METHOD, MixupSettings(**SHORT))


def test_it_stands_degenerate_data() -> None:
    assert_trains_on_odd_data(METHOD)


def test_its_phases_and_published_settings() -> None:
    assert_phases_add_up(METHOD)
    assert_published_fit(METHOD, PUBLISHED)
    assert MixupSettings().alpha == 32
