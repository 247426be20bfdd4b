"""The losses against loops from the paper's equations, closed forms, and finite differences for the gradients."""

from collections.abc import Callable

import oracles
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from dividemix.algorithm.losses import loss_reg, loss_u, loss_x, negative_entropy, ramp_up

SEEDS = st.integers(0, 2**32 - 1)
ROWS, CLASSES = st.integers(1, 8), st.integers(2, 12)

# Two classes never predicted, one row sure and right about nothing: every softmax underflows somewhere.
EXTREME = [[1e4, -1e4, 0.0, -1e4], [0.0, -1e4, 1e4, -1e4], [1e4, -1e4, -1e4, -1e4]]
EXTREME_TARGETS = [[0.0, 1.0, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25], [1.0, 0.0, 0.0, 0.0]]


def _logits(seed: int, num_rows: int, num_classes: int, scale: float = 3.0) -> Tensor:
    return scale * torch.randn(
        num_rows, num_classes, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )


def _targets(seed: int, num_rows: int, num_classes: int) -> Tensor:
    return _logits(seed + 1, num_rows, num_classes).softmax(1)


LOSSES: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], Callable[[oracles.Rows, oracles.Rows], float]]] = {
    "loss_x": (loss_x, oracles.loss_x),
    "loss_u": (loss_u, oracles.loss_u),
    "loss_reg": (lambda logits, _: loss_reg(logits), lambda logits, _: oracles.loss_reg(logits)),
    "negative_entropy": (
        lambda logits, _: negative_entropy(logits),
        lambda logits, _: oracles.negative_entropy(logits),
    ),
}


@pytest.mark.parametrize("name", LOSSES)
@settings(deadline=None)
@given(seed=SEEDS, num_rows=ROWS, num_classes=CLASSES, scale=st.sampled_from([0.1, 3.0, 30.0]))
def test_loss_is_the_equation(name: str, seed: int, num_rows: int, num_classes: int, scale: float) -> None:
    loss, oracle = LOSSES[name]
    logits, targets = _logits(seed, num_rows, num_classes, scale), _targets(seed, num_rows, num_classes)
    found = loss(logits, targets)
    assert found.shape == ()
    assert found.item() == pytest.approx(oracle(logits.tolist(), targets.tolist()), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_gradient_is_the_finite_difference(name: str) -> None:
    loss, _ = LOSSES[name]
    targets = _targets(2, 4, 5)
    assert torch.autograd.gradcheck(lambda logits: loss(logits, targets), _logits(1, 4, 5).requires_grad_())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", LOSSES)
def test_underflow_leaves_value_and_gradient_finite(name: str, dtype: torch.dtype) -> None:
    """Oracle: the loops, which work in logarithms: a probability of exp(-20000) is small, not zero."""
    loss, oracle = LOSSES[name]
    logits = torch.tensor(EXTREME, dtype=dtype, requires_grad=True)
    value = loss(logits, torch.tensor(EXTREME_TARGETS, dtype=dtype))
    value.backward()
    assert value.item() == pytest.approx(oracle(EXTREME, EXTREME_TARGETS), rel=1e-5, abs=1e-6)
    assert logits.grad is not None
    assert logits.grad.isfinite().all()


@pytest.mark.parametrize("name", LOSSES)
def test_adding_a_constant_to_the_logits_changes_nothing(name: str) -> None:
    loss, _ = LOSSES[name]
    logits, targets = _logits(3, 6, 5), _targets(3, 6, 5)
    shift = _logits(4, 6, 1)
    torch.testing.assert_close(loss(logits + shift, targets), loss(logits, targets))


@pytest.mark.parametrize("name", LOSSES)
def test_order_of_rows_does_not_matter(name: str) -> None:
    loss, _ = LOSSES[name]
    logits, targets = _logits(5, 6, 5), _targets(5, 6, 5)
    torch.testing.assert_close(loss(logits.flip(0), targets.flip(0)), loss(logits, targets))


def test_loss_x_of_one_hot_targets_is_cross_entropy() -> None:
    """Oracle: torch's cross-entropy of class indices."""
    logits, labels = _logits(6, 7, 4), torch.tensor([0, 3, 1, 2, 2, 0, 1])
    expected = torch.nn.functional.cross_entropy(logits, labels)
    torch.testing.assert_close(loss_x(logits, torch.eye(4, dtype=torch.float64)[labels]), expected)


def test_loss_u_is_averaged_over_classes_too() -> None:
    """Closed form: a uniform prediction against one-hot targets; the paper's norm would be C times as large."""
    num_classes = 10
    expected = ((1 - 1 / num_classes) ** 2 + (num_classes - 1) / num_classes**2) / num_classes
    assert loss_u(torch.zeros(num_classes, num_classes), torch.eye(num_classes)).item() == pytest.approx(
        expected, rel=1e-5
    )


def test_loss_u_is_zero_where_prediction_and_target_meet() -> None:
    logits = _logits(7, 5, 4)
    assert loss_u(logits, logits.softmax(1)).item() == pytest.approx(0, abs=1e-20)


def test_loss_reg_is_zero_for_a_uniform_mean() -> None:
    """Each row may be as sure as it likes, as long as the classes come out even."""
    assert loss_reg(torch.zeros(3, 4, dtype=torch.float64)).item() == pytest.approx(0, abs=1e-12)
    assert loss_reg(8 * torch.eye(4, dtype=torch.float64)).item() == pytest.approx(0, abs=1e-12)


@settings(deadline=None)
@given(SEEDS, ROWS, CLASSES)
def test_loss_reg_is_positive_otherwise(seed: int, num_rows: int, num_classes: int) -> None:
    assert loss_reg(_logits(seed, num_rows, num_classes)).item() > 0


def test_loss_reg_averages_predictions_not_logits() -> None:
    """Closed form: mean prediction (3/4, 1/4), from rows (1, 0) nearly and (1/2, 1/2)."""
    expected = 0.5 * torch.log(torch.tensor([0.5 / 0.75, 0.5 / 0.25], dtype=torch.float64)).sum()
    torch.testing.assert_close(loss_reg(torch.tensor([[80.0, 0.0], [0.0, 0.0]], dtype=torch.float64)), expected)


def test_negative_entropy_lies_between_uniform_and_sure() -> None:
    assert negative_entropy(torch.zeros(3, 4)).item() == pytest.approx(-torch.tensor(4.0).log().item(), rel=1e-6)
    assert negative_entropy(1e4 * torch.eye(4)).item() == pytest.approx(0, abs=1e-12)


def test_descending_the_penalty_makes_predictions_less_sure() -> None:
    """The sign: the penalty is added to the loss, so that minimising it must raise the entropy."""
    logits = _logits(8, 5, 4).requires_grad_()
    negative_entropy(logits).backward()
    assert logits.grad is not None
    stepped = (logits - 0.1 * logits.grad).detach()
    assert oracles.negative_entropy(stepped.tolist()) < oracles.negative_entropy(logits.tolist())


@pytest.mark.parametrize(
    ("epoch", "warmup_epochs", "rampup_epochs", "expected"),
    [
        (0, 10, 16, 0.0),
        (9.5, 10, 16, 0.0),
        (10, 10, 16, 0.0),
        (10.5, 10, 16, 0.5 / 16),
        (18, 10, 16, 0.5),
        (26, 10, 16, 1.0),
        (300, 10, 16, 1.0),
        (1, 1, 0, 1.0),
        (1.25, 1, 0, 1.0),
    ],
)
def test_ramp_up(epoch: float, warmup_epochs: int, rampup_epochs: int, expected: float) -> None:
    weight = ramp_up(epoch, warmup_epochs, rampup_epochs)
    assert isinstance(weight, float)
    assert weight == pytest.approx(expected, abs=1e-12)
