"""Heads by fold. Oracles: scikit-learn's logistic regression on the other folds; finite differences; the definition."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from dividemix.methods import fold_heads
from dividemix.methods.fold_heads import Folded, out_of_sample, principal_axes, train_heads


def folded(num_samples: int = 200, num_features: int = 6, *, most: int = 100) -> Folded:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(num_samples, num_features, generator=generator) * torch.arange(1.0, num_features + 1)
    labels = (features @ torch.randn(num_features, 3, generator=generator) + 3).argmax(dim=1)
    labels = torch.where(torch.rand(num_samples, generator=generator) < 0.2, (labels + 1) % 3, labels)
    axes, spread = principal_axes(features, most=most)
    return Folded(features, labels, torch.arange(num_samples) % 4, 4, axes, spread)


@pytest.mark.parametrize("most", [100, 3])  # with principal axes, and without
@pytest.mark.parametrize("cached", [2**18, 1])
def test_a_head_is_scikit_learns_logistic_regression_on_the_other_folds(
    most: int, cached: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fold_heads, "_CACHED", cached)  # all samples at once, or block after block
    data, lam = folded(600, most=most), 0.05
    heads = torch.zeros(4, 7, 3)
    for _ in range(20):
        heads = train_heads(heads, data, lam, torch.eye(3), 20)
    out = out_of_sample(heads, data)
    for k in range(4):
        seen = data.folds != k
        rival = LogisticRegression(C=1 / (lam * int(seen.sum())), tol=1e-8, max_iter=10_000)
        rival.fit(data.features[seen].numpy(), data.labels[seen].numpy())
        expected = rival.predict_log_proba(data.features[~seen].numpy())
        np.testing.assert_allclose(out[~seen].exp().numpy(), np.exp(expected), atol=0.01)


def test_training_lowers_the_loss_through_the_noise_matrix() -> None:
    """The loss as a loop over the samples; at the minimum no small change of a weight makes it smaller."""
    data, lam = folded(80, 3), 0.1
    matrix = torch.tensor([[0.8, 0.2, 1e-6], [1e-6, 0.8, 0.2], [0.2, 1e-6, 0.8]])

    def loss(head: Tensor, k: int) -> float:
        total, number = 0.0, 0
        for x, label, fold in zip(data.features, data.labels, data.folds, strict=True):
            if fold != k:
                probs = torch.softmax(x @ head[:-1] + head[-1], dim=0)
                total, number = total - torch.log(probs @ matrix[:, label]).item(), number + 1
        return total / number + lam / 2 * head[:-1].square().sum().item()

    heads = torch.zeros(4, 4, 3)
    for _ in range(20):
        heads = train_heads(heads, data, lam, matrix, 20)
    reached = loss(heads[1], 1)
    assert reached < loss(torch.zeros(4, 3), 1) - 0.1
    for row in range(4):
        for column in range(3):
            for change in (-0.1, 0.1):
                moved = heads[1].clone()
                moved[row, column] += change
                assert loss(moved, 1) > reached


@pytest.mark.parametrize("noise", [0.0, 1e-6, 0.3])
@pytest.mark.parametrize("factor", [0.1, 20.0])
def test_value_and_slope_of_the_loss_are_right_where_predictions_are_sure_and_wrong(
    noise: float, factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Probabilities down to exp(-10,000), by vectors far from the others. Oracle: float64, logarithms and autograd."""
    data, lam = folded(100), 0.1
    data.features[::10] *= 50
    matrix = (1 - noise) * torch.eye(3) + noise / 3
    heads = factor * torch.randn(4, 7, 3, generator=torch.Generator().manual_seed(1))
    data = Folded(data.features, data.labels, data.folds, 4, torch.empty(6, 0), torch.full((6,), 3 - 3 * lam))
    found: list[tuple[float, Tensor]] = []  # at the heads; with this spread, the scale of the weights is 1

    def ask_once(function: Callable[[Tensor], tuple[float, Tensor]], start: Tensor, num_steps: int) -> Tensor:
        found.append(function(start))
        return start

    monkeypatch.setattr(fold_heads, "minimise", ask_once)
    train_heads(heads, data, lam, matrix, 1)

    exact = heads.double().requires_grad_()
    logits = torch.einsum("nd,fdc->nfc", data.features.double(), exact[:, :-1]) + exact[:, -1]
    likelihoods = (logits.log_softmax(dim=2) + matrix.double().T.log()[data.labels][:, None]).logsumexp(dim=2)
    losses = [-likelihoods[data.folds != k, k].mean() for k in range(4)]
    expected = torch.stack(losses).sum() + lam / 2 * exact[:, :-1].square().sum()
    (slope,) = torch.autograd.grad(expected, exact)
    slope[:, -1] *= 2  # the solver's bias is a half of the head's
    assert found[0][0] == pytest.approx(expected.item(), rel=1e-5)
    distance = (found[0][1].view_as(slope) - slope).norm() / slope.norm()
    assert distance < 1e-4


def test_without_noise_the_other_classes_need_not_be_computed() -> None:
    """The same bits as through a matrix that is the identity: the logarithms of its zeros are minus infinity."""
    generator = torch.Generator().manual_seed(0)
    logits, weight = 9 * torch.randn(50, 4, 3, generator=generator), torch.rand(50, 4, generator=generator)
    labels = torch.arange(50) % 3
    through, without = (fold_heads._explain(logits.clone(), labels, weight, m) for m in (torch.eye(3).log(), None))
    assert torch.equal(through[0], without[0])
    assert torch.equal(through[1], without[1])


def test_a_sample_does_not_influence_what_is_said_of_it() -> None:
    data = folded()
    other = Folded(data.features, data.labels.clone(), data.folds, 4, data.axes, data.spread)
    changed = data.folds == 2
    other.labels[changed] = (other.labels[changed] + 1) % 3
    before, after = (train_heads(torch.zeros(4, 7, 3), part, 0.1, torch.eye(3), 1) for part in (data, other))
    torch.testing.assert_close(before[2], after[2])
    assert not torch.allclose(before[1], after[1])
