"""Bootstrap. Oracles: a loop over rows from the equations, the gradient by hand, cross-entropy where they agree."""

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
from tiny import TinyData, fit, start
from torch import Tensor
from torch.nn import functional as F

from dividemix.errors import InputError
from dividemix.methods import METHODS
from dividemix.methods.bootstrap import METHOD, PUBLISHED, BootstrapSettings, bootstrap_loss
from dividemix.methods.method import MethodSettings


def drawn() -> tuple[Tensor, Tensor]:
    """Logits with a gradient, and labels that they do not always predict."""
    generator = torch.Generator().manual_seed(1)
    logits = 2 * torch.randn(9, 4, generator=generator, dtype=torch.float64)
    return logits.requires_grad_(), torch.randint(4, (9,), generator=generator)


def gradient(loss: Tensor, logits: Tensor) -> Tensor:
    """The gradient of the loss."""
    (found,) = torch.autograd.grad(loss, logits)
    return found


@pytest.mark.parametrize("variant", ["soft", "hard"])
@pytest.mark.parametrize("beta", [0.0, 0.3, 0.95])
def test_the_loss_is_that_of_the_equation(variant: str, beta: float) -> None:
    logits, labels = drawn()
    total = 0.0
    for row, label in zip(logits.tolist(), labels.tolist(), strict=True):
        log_probs = oracles.log_softmax(row)
        best = max(range(4), key=lambda c: row[c])
        for c in range(4):
            own = math.exp(log_probs[c]) if variant == "soft" else float(c == best)
            total -= (beta * float(c == label) + (1 - beta) * own) * log_probs[c]
    assert bootstrap_loss(logits, labels, variant, beta).item() == pytest.approx(total / 9, rel=1e-12)


def test_the_gradient_passes_through_the_soft_target() -> None:
    """By hand: beta (p - y) - (1 - beta) p (log p + H(p)). A detached target would leave beta (p - y)."""
    logits, labels = drawn()
    beta, y = 0.7, F.one_hot(labels, 4)
    p = logits.softmax(dim=1)
    entropy = -(p * p.log()).sum(dim=1, keepdim=True)
    expected = (beta * (p - y) - (1 - beta) * p * (p.log() + entropy)) / 9
    found = gradient(bootstrap_loss(logits, labels, "soft", beta), logits)
    torch.testing.assert_close(found, expected.detach())
    target = beta * y + (1 - beta) * p.detach()
    detached = gradient(-(target * logits.log_softmax(dim=1)).sum(dim=1).mean(), logits)
    torch.testing.assert_close(detached, beta * gradient(F.cross_entropy(logits, labels), logits))
    assert (found - detached).abs().max() > 1e-3


def test_hard_with_labels_that_the_net_predicts_is_cross_entropy() -> None:
    logits, _ = drawn()
    labels = logits.argmax(dim=1)
    loss, plain = bootstrap_loss(logits, labels, "hard", 0.8), F.cross_entropy(logits, labels)
    torch.testing.assert_close(loss, plain)
    torch.testing.assert_close(gradient(loss, logits), gradient(plain, logits))


@pytest.mark.parametrize("fields", [{"beta": 1.0}, {"beta": 1.0, "variant": "hard"}, {"warmup_share": 1.0}], ids=str)
def test_with_beta_1_or_warm_up_to_the_end_it_is_cross_entropy_to_the_bit(fields: dict[str, Any]) -> None:
    s, plain, data = BootstrapSettings(**SHORT, **fields), MethodSettings(**SHORT), TinyData()
    state, other = start(METHOD, s, data), start(METHODS["cross_entropy"], plain, data)
    losses = [report.losses for report in fit(METHOD, state, data, s)]
    assert losses == [report.losses for report in fit(METHODS["cross_entropy"], other, data, plain)]
    for name, tensor in other.tensors().items():
        assert torch.equal(tensor, state.tensors()[name]), name


@pytest.mark.parametrize("variant", ["soft", "hard"])
def test_after_the_warm_up_the_loss_is_its_own(variant: Any) -> None:
    """The epochs before are those of cross-entropy, to the bit; the first one after them is not."""
    s, plain, data = BootstrapSettings(**SHORT, variant=variant), MethodSettings(**SHORT), TinyData()
    reports = list(fit(METHOD, start(METHOD, s, data), data, s))
    assert [report.phase for report in reports] == ["warmup"] * 3 + ["bootstrap"] * 5
    assert [report.selects for report in reports] == [False] * 3 + [True] * 5
    losses = [report.losses for report in reports]
    method = METHODS["cross_entropy"]
    others = [report.losses for report in fit(method, start(method, plain, data), data, plain)]
    assert losses[:3] == others[:3]
    assert losses[3] != others[3]


def test_beta_is_that_of_the_variant_unless_it_is_set() -> None:
    assert BootstrapSettings().label_weight == 0.95
    assert BootstrapSettings(variant="hard").label_weight == 0.8
    assert BootstrapSettings(variant="hard", beta=0.5).label_weight == 0.5
    with pytest.raises(InputError, match=r"^variant is 'weak': it must be one of soft, hard$"):
        BootstrapSettings(variant="weak")  # type: ignore[arg-type]


@pytest.mark.parametrize("variant", ["soft", "hard"])
def test_resumed_it_continues_to_the_bit(variant: Any) -> None:
    assert_resumes(METHOD, BootstrapSettings(**SHORT, variant=variant))


@pytest.mark.parametrize("variant", ["soft", "hard"])
def test_it_stands_degenerate_data(variant: str) -> None:
    assert_trains_on_odd_data(METHOD, variant=variant)


def test_its_phases_and_published_settings() -> None:
    assert_phases_add_up(METHOD)
    assert_published_fit(METHOD, PUBLISHED)
    warm_up, own = METHOD.phases(BootstrapSettings(epochs=300))
    assert (warm_up.num_epochs, own.num_epochs) == (105, 195)
