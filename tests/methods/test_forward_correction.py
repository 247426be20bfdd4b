"""F-correction. Oracles: a loop over rows, the gradient by hand, a known T, cross-entropy without noise."""

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
from tiny import TinyData, copied, fit, same, start, weights_of
from torch import Tensor
from torch.nn import functional as F

from dividemix.methods.evaluation import evaluate, judge_by_loss
from dividemix.methods.forward_correction import (
    METHOD,
    PUBLISHED,
    ForwardCorrectionSettings,
    estimate_transition,
    forward_loss,
)
from dividemix.methods.method import TrainingSets

# Asymmetric, so that a transposed T is found out.
T = torch.tensor([[0.6, 0.3, 0.1], [0.0, 0.9, 0.1], [0.25, 0.05, 0.7]], dtype=torch.float64)


def drawn(num_rows: int = 9) -> tuple[Tensor, Tensor]:
    """Logits with a gradient, and labels."""
    generator = torch.Generator().manual_seed(1)
    logits = 2 * torch.randn(num_rows, 3, generator=generator, dtype=torch.float64)
    return logits.requires_grad_(), torch.randint(3, (num_rows,), generator=generator)


def gradient(loss: Tensor, logits: Tensor) -> Tensor:
    (found,) = torch.autograd.grad(loss, logits)
    return found


# The loss.


def test_the_loss_is_that_of_the_equation() -> None:
    logits, labels = drawn()
    total = 0.0
    for row, label in zip(logits.tolist(), labels.tolist(), strict=True):
        probs = [math.exp(entry) for entry in oracles.log_softmax(row)]
        total -= math.log(sum(probs[i] * float(T[i, label]) for i in range(3)))
    assert forward_loss(logits, T.T[labels]).item() == pytest.approx(total / 9, rel=1e-9)


def test_the_gradient_is_prediction_minus_posterior() -> None:
    """By hand: p - r, where r_i is p_i T_iy, normalised."""
    logits, labels = drawn()
    p = logits.softmax(dim=1).detach()
    joint = p * T.T[labels]
    expected = (p - joint / joint.sum(dim=1, keepdim=True)) / 9
    torch.testing.assert_close(gradient(forward_loss(logits, T.T[labels]), logits), expected)


def test_without_noise_it_is_cross_entropy() -> None:
    logits, labels = drawn()
    loss, plain = forward_loss(logits, torch.eye(3, dtype=torch.float64)[labels]), F.cross_entropy(logits, labels)
    torch.testing.assert_close(loss, plain)
    torch.testing.assert_close(gradient(loss, logits), gradient(plain, logits))


def test_labels_that_say_nothing_teach_nothing() -> None:
    logits, _ = drawn()
    loss = forward_loss(logits, torch.full((9, 3), 1 / 3, dtype=torch.float64))
    assert loss.item() == pytest.approx(math.log(3), rel=1e-12)
    assert gradient(loss, logits).abs().max() < 1e-15


def test_true_probabilities_are_where_the_expected_gradient_vanishes() -> None:
    """Proper: labels drawn from p T, each weighed by its probability."""
    logits = torch.tensor([[0.3, -1.0, 0.8]], dtype=torch.float64, requires_grad=True)
    noisy = (logits.softmax(dim=1) @ T).detach().squeeze(0)
    expected = sum(noisy[j] * forward_loss(logits, T.T[j][None]) for j in range(3))
    assert isinstance(expected, Tensor)
    assert gradient(expected, logits).abs().max() < 1e-11  # T has a 0, which the loss takes for 1e-12


def test_an_impossible_label_has_a_finite_loss() -> None:
    logits = torch.tensor([[-200.0, 200.0, -200.0]], requires_grad=True)
    loss = forward_loss(logits, T.float().T[0][None])
    assert loss.isfinite()
    assert gradient(loss, logits).isfinite().all()


# The estimate of T.


def test_a_known_transition_is_found_in_spite_of_outliers() -> None:
    """Predictions that are rows of T, and in each class a few that are too sure of it."""
    true = torch.arange(90) % 3
    predictions = T[true].clone()
    predictions[:6] = F.one_hot(true[:6], 3).double()
    labels = torch.arange(90) // 30
    torch.testing.assert_close(estimate_transition(predictions, labels, 0.3), T)
    assert not torch.allclose(estimate_transition(predictions, labels, 0.0), T)


def test_a_row_is_the_prediction_of_the_next_sample_after_the_outliers() -> None:
    """Oracle: the public code's rule for ten balanced classes, the largest one below the quantile of 97 %."""
    generator = torch.Generator().manual_seed(3)
    predictions = torch.randn(400, 10, generator=generator, dtype=torch.float64).softmax(dim=1)
    found = estimate_transition(predictions, torch.arange(400) % 10, 0.3)
    for c in range(10):
        column = predictions[:, c].tolist()
        threshold = sorted(column)[math.ceil(0.97 * 399)]
        best = max((value, i) for i, value in enumerate(column) if value < threshold)[1]
        torch.testing.assert_close(found[c], predictions[best])


def test_its_rows_sum_to_1_even_for_classes_without_samples() -> None:
    predictions = torch.rand(5, 4, generator=torch.Generator().manual_seed(0))
    for share in (0.0, 0.3, 1.0):
        found = estimate_transition(predictions, torch.tensor([0, 0, 0, 0, 2]), share)
        torch.testing.assert_close(found.sum(dim=1), torch.ones(4, dtype=torch.float64))


# The two runs.


def run(num_epochs: int, **fields: Any) -> tuple[Any, TinyData, ForwardCorrectionSettings]:
    """A state after some epochs of 8."""
    s, data = ForwardCorrectionSettings(**{**SHORT, **fields}), TinyData(60)
    state = start(METHOD, s, data)
    for _, _ in zip(range(num_epochs), fit(METHOD, state, data, s), strict=False):
        pass
    return state, data, s


def test_the_second_run_starts_from_the_first_weights() -> None:
    """Oracle: a rate so small that its steps change nothing in float64."""
    state, data, s = run(0)
    before = weights_of(state.nets[0])
    for _ in range(4):
        next(fit(METHOD, state, data, s))
    learned = weights_of(state.nets[0])
    assert not same({"w": before["head.weight"]}, {"w": learned["head.weight"]})
    tiny_rate = ForwardCorrectionSettings(**{**SHORT, "lr": 1e-300})
    next(fit(METHOD, state, data, tiny_rate))
    again = weights_of(state.nets[0])
    for name in ("body.weight", "head.weight", "head.bias"):
        assert torch.equal(again[name], before[name])


def test_the_first_run_does_not_see_the_tenth_that_it_is_measured_on_and_the_second_sees_all() -> None:
    state, data, s = run(4)
    first = set(torch.cat(data.asked).tolist())
    assert 0 < 60 - len(first) <= 6
    data.asked.clear()
    next(fit(METHOD, state, data, s))
    assert set(torch.cat(data.asked).tolist()) == set(range(60))


def test_t_is_estimated_from_the_epoch_that_fits_the_held_out_labels_best() -> None:
    """Oracle: the predictions after each epoch, and their loss on the samples that no step had."""
    s, data = ForwardCorrectionSettings(**{**SHORT, "epochs": 60, "lr_drop_epoch": 60, "lr": 0.5}), TinyData(60)
    state = start(METHOD, s, data)
    epochs = fit(METHOD, state, data, s)
    seen = []
    for _ in range(30):
        report = next(epochs)
        found = evaluate(state, data, torch.arange(60), keep_probs=True)
        assert found.pred_probs is not None
        seen.append((report.figures["held_out_loss"], found))
    held = sorted(set(range(60)) - set(torch.cat(data.asked).tolist()))
    for loss, found in seen:
        assert found.losses[0, held].mean().item() == pytest.approx(loss)
    best = min(seen, key=lambda entry: entry[0])[1]
    assert best is not seen[-1][1]
    assert best.pred_probs is not None
    assert torch.equal(state.samples["predictions"], best.pred_probs)
    report = next(epochs)
    expected = estimate_transition(best.pred_probs, data.labels, 0.3)
    assert "predictions" not in state.samples
    for i, label in enumerate(data.labels.tolist()):
        torch.testing.assert_close(state.samples["label_likelihood"][i], expected[:, label].float())
    right = sum(float(expected[label, label]) for label in data.labels.tolist())
    assert report.figures["noise_rate"] == pytest.approx(1 - right / 60, rel=1e-5)


def test_t_stays_as_it_is_in_the_second_run() -> None:
    state, data, s = run(5)
    before = copied(state.samples)
    for _ in fit(METHOD, state, data, s):
        pass
    assert state.samples.keys() == {"label_likelihood"}
    assert torch.equal(state.samples["label_likelihood"], before["label_likelihood"])


def test_each_run_has_the_whole_schedule() -> None:
    s = ForwardCorrectionSettings(epochs=8, lr=1.0, lr_drop_epoch=4)
    assert [s.learning_rate(epoch) for epoch in range(8)] == [1, 1, 0.1, 0.1] * 2
    cosine = ForwardCorrectionSettings(epochs=8, lr=1.0, lr_schedule="cosine")
    rates = [cosine.learning_rate(epoch) for epoch in range(8)]
    assert rates == pytest.approx([(1 + math.cos(math.pi * epoch / 4)) / 2 for epoch in range(4)] * 2)


def test_its_opinion_is_the_posterior_of_the_given_label() -> None:
    state, data, s = run(8)
    judged = METHOD.judge(state, data, s)
    likelihood = state.samples["label_likelihood"].double()
    for i, label in enumerate(data.labels.tolist()):
        joint = [float(judged.pred_probs[i, c]) * float(likelihood[i, c]) for c in range(3)]
        assert judged.clean_prob[0, i].item() == pytest.approx(joint[label] / sum(joint), rel=1e-6)


def test_before_t_is_known_and_for_other_samples_its_opinion_is_by_loss() -> None:
    state, data, s = run(2)
    assert torch.equal(METHOD.judge(state, data, s).clean_prob, judge_by_loss(state, data).clean_prob)
    state, _, s = run(8)
    more = TinyData(70)
    assert torch.equal(METHOD.judge(state, more, s).clean_prob, judge_by_loss(state, more).clean_prob)


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_resumed_it_continues_to_the_bit(share: float) -> None:
    assert_resumes(METHOD, ForwardCorrectionSettings(**SHORT, first_share=share), TrainingSets(TinyData(60)))


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_it_stands_degenerate_data(share: float) -> None:
    assert_trains_on_odd_data(METHOD, first_share=share)


def test_its_phases_and_published_settings() -> None:
    assert_phases_add_up(METHOD)
    assert_published_fit(METHOD, PUBLISHED)
