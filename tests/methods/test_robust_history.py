"""`robust_history`, watched from outside. Oracles: the equations applied to the recorded logits; ordinary training."""

import math
from typing import Any

import oracles
import pytest
import torch
from method_checks import SHORT, assert_phases_add_up, assert_resumes, assert_trains_on_odd_data
from tiny import NUM_CLASSES, TinyData, fit, record, start, weights_of
from torch import Tensor
from torch.nn import functional as F

from dividemix.methods import METHODS
from dividemix.methods.anchors import anchor_matrix, class_shares, mistaken_for, noise_by_label
from dividemix.methods.method import MethodSettings
from dividemix.methods.prediction_history import clean_prob_by_class, predictions, refined
from dividemix.methods.robust_history import METHOD, RobustHistorySettings


def settings_of(**fields: Any) -> RobustHistorySettings:
    """8 epochs: 3 with the given labels, 5 with refined ones."""
    return RobustHistorySettings(**{**SHORT, "given_share": 0.4, "alpha": 0.0, **fields})


def mixing(x: Tensor, views: Tensor) -> tuple[Tensor, float]:
    """The partner (R,) of each row and the lambda with which x (R, ...) = lambda views + (1 - lambda) partners."""
    x, views = x.flatten(1), views.flatten(1)
    shares: list[float] = []
    partners = []
    for i, row in enumerate(x):
        for j in (i, *range(len(views))):
            other = views[j]
            step = views[i] - other
            lam = float((row - other) @ step / (step @ step)) if i != j else 1.0
            if torch.allclose(row, lam * views[i] + (1 - lam) * other):
                partners.append(j)
                shares += [lam] if i != j else []
                break
    assert len(partners) == len(x)
    assert shares == pytest.approx([shares[0]] * len(shares))
    return torch.tensor(partners), shares[0]


@pytest.mark.parametrize("alpha", [0.0, 2.0])
def test_every_epoch_learns_the_labels_that_the_recorded_predictions_make(alpha: float) -> None:
    """An epoch draws each of 80 samples once, so the history is a mean over epochs; mixed samples do not count."""
    s, data = settings_of(history_decay=0.6, alpha=alpha), TinyData(80)
    state = start(METHOD, s, data)
    epochs = fit(METHOD, state, data, s)
    targets: Tensor = F.one_hot(data.labels, NUM_CLASSES).double()
    history = torch.zeros(80, NUM_CLASSES, dtype=torch.float64)
    for epoch in range(8):
        if epoch == 3:
            with torch.no_grad():
                plain = state.predictors[0].eval()(data.images).softmax(dim=1)
            history = plain.double()
            matrix = anchor_matrix(plain)
            noise = noise_by_label(matrix, class_shares(plain, matrix))
        if epoch >= 3:
            probs = predictions(history, data.labels)
            doubt = torch.tensor([min(max((one - 0.05) / 0.1, 0), 1) for one in noise.tolist()], dtype=torch.float64)
            clean_prob = 1 - doubt[data.labels] * (1 - clean_prob_by_class(probs, data.labels))
            targets = refined(probs, data.labels, clean_prob, mistaken_for(matrix))
        data.asked.clear()
        data.views.clear()
        report, calls = record(state, epochs)
        assert report.phase == ("warmup" if epoch < 3 else "refine")
        losses, latest = [], history.clone()
        for step, (call, index, views) in enumerate(zip(calls, data.asked, data.views, strict=True)):
            assert call.training
            if alpha and epoch >= 3 and step % 2:
                partner, lam = mixing(call.x.double(), views)
                mixed = lam * targets[index] + (1 - lam) * targets[index[partner]]
                losses.append(oracles.loss_x(call.logits.tolist(), mixed.tolist()))
                continue
            torch.testing.assert_close(call.x.double(), views)
            losses.append(oracles.loss_x(call.logits.tolist(), targets[index].tolist()))
            probs = call.logits.softmax(dim=1).double()
            latest[index] = probs if epoch == 0 else 0.6 * history[index] + 0.4 * probs
        history = latest
        assert report.losses["loss"] == pytest.approx([math.fsum(losses) / len(losses)], rel=1e-4)
        torch.testing.assert_close(state.samples["history"].double(), history, rtol=0, atol=1e-5)
        if epoch >= 3:
            assert report.figures["noise_rate"] == pytest.approx(noise[data.labels].mean().item(), abs=1e-5)


def test_labels_are_doubted_in_proportion_to_the_noise_between_5_and_15_percent() -> None:
    """Oracle: the loss of the recorded logits with labels that are not, half and fully doubted."""
    data = TinyData(80)
    for noise, doubt in ((0.04, 0.0), (0.1, 0.5), (0.3, 1.0)):
        s = settings_of()
        state = start(METHOD, s, data)
        epochs = fit(METHOD, state, data, s)
        for _ in range(3):
            next(epochs)
        matrix = torch.full((3, 3), noise / 2).fill_diagonal_(1 - noise)
        state.buffers |= {"noise_matrix": matrix, "noise_by_label": torch.full((3,), noise)}
        probs = state.samples["history"].clone()
        clean_prob = 1 - doubt * (1 - clean_prob_by_class(probs, data.labels))
        targets = refined(probs, data.labels, clean_prob, mistaken_for(matrix))
        data.asked.clear()
        report, calls = record(state, epochs)
        pairs = zip(calls, data.asked, strict=True)
        losses = [oracles.loss_x(call.logits.tolist(), targets[index].tolist()) for call, index in pairs]
        assert report.losses["loss"] == pytest.approx([math.fsum(losses) / len(losses)], rel=1e-5)
        assert doubt or torch.equal(targets, F.one_hot(data.labels, NUM_CLASSES).float())


def test_the_model_is_the_mean_of_the_weights_over_a_part_of_an_epoch() -> None:
    s, data = settings_of(average_epochs=0.5), TinyData(80)
    state = start(METHOD, s, data)
    mean = weights_of(state.nets[0])
    _, calls = record(state, fit(METHOD, state, data, s))
    after = [call.weights[0] for call in calls[1:]] + [weights_of(state.nets[0])]  # each step
    keep = math.exp(-1 / (0.5 * len(after)))
    for weights in after:
        mean = {name: keep * mean[name] + (1 - keep) * weights[name] for name in mean}
    for name, parameter in state.predictors[0].named_parameters():
        torch.testing.assert_close(parameter, mean[name])


def test_each_phase_has_the_whole_curve_of_the_rate() -> None:
    """Ten epochs, four of them with the given labels: two cosines, of four and of six epochs, which steps follow."""
    s, data = settings_of(epochs=10, lr=0.1, lr_schedule="cosine", batch_size=4), TinyData(80)
    expected = [0.05 * (1 + math.cos(math.pi * k / 4)) for k in range(4)]
    expected += [0.05 * (1 + math.cos(math.pi * k / 6)) for k in range(6)]
    assert [s.learning_rate(epoch) for epoch in range(10)] == pytest.approx(expected)
    state, rates = start(METHOD, s, data), []
    optimizer = state.learners[0].optimizer
    optimizer.register_step_pre_hook(lambda *_: rates.append(optimizer.param_groups[0]["lr"]))
    for _ in fit(METHOD, state, data, s):
        pass
    assert len(rates) == 100  # ten steps an epoch
    for epoch, (rate, after) in enumerate(zip(expected, [*expected[1:4], 0.0, *expected[5:], 0.0], strict=True)):
        for step in range(10):
            rise = (step + 1) / 10 if epoch in (0, 4) else 1.0
            assert rates[10 * epoch + step] == pytest.approx(rise * (rate + (after - rate) * step / 10))


def test_a_new_plan_stretches_what_is_left_of_a_phase() -> None:
    """Twenty epochs, eight with the given labels; planned again as 30 after ten.

    Two twelfths of the second curve are over by then, and the other twenty epochs divide the rest.
    """
    s = settings_of(epochs=20, lr=0.1, lr_schedule="cosine").replanned(10, {"epochs": 30, "given_epochs": 8})
    shares = [k / 8 for k in range(8)] + [0, 1 / 12] + [2 / 12 + 10 / 12 * k / 20 for k in range(20)]
    expected = [0.05 * (1 + math.cos(math.pi * share)) for share in shares]
    assert [s.in_force(epoch).learning_rate(epoch) for epoch in range(30)] == pytest.approx(expected)


def test_with_the_given_labels_alone_it_is_cross_entropy_to_the_bit() -> None:
    s, data, plain = settings_of(given_share=1.0), TinyData(), MethodSettings(**SHORT)
    other = start(METHODS["cross_entropy"], plain, data)
    losses = [report.losses for report in fit(METHODS["cross_entropy"], other, data, plain)]
    state = start(METHOD, s, data)
    assert losses == [report.losses for report in fit(METHOD, state, data, s)]
    for name, tensor in other.nets[0].state_dict().items():
        assert torch.equal(tensor, state.nets[0].state_dict()[name]), name


def test_it_predicts_with_the_averaged_net_and_doubts_by_bayes_with_the_noise_matrix() -> None:
    s, data = settings_of(), TinyData(80)
    state = start(METHOD, s, data)
    for _ in fit(METHOD, state, data, s):
        pass
    assert state.predictors == [state.learners[0].average]
    judged = METHOD.judge(state, data, s)
    probs = state.predictors[0].eval()(data.images).softmax(dim=1)
    matrix = state.buffers["noise_matrix"]
    for i, label in enumerate(data.labels.tolist()):
        joint = [probs[i, c].item() * matrix[c, label].item() for c in range(NUM_CLASSES)]
        expected = [one / math.fsum(joint) for one in joint]
        assert judged.pred_probs[i].tolist() == pytest.approx(probs[i].tolist(), abs=1e-5)
        assert judged.clean_prob[0, i].item() == pytest.approx(expected[label], abs=1e-5)


def test_labels_that_were_changed_are_found() -> None:
    """Well separated samples, three in ten labels wrong: most wrong ones are flagged, hardly a right one."""
    s, data = settings_of(epochs=20, batch_size=8), TinyData(200, seed=4)
    is_wrong = data.labels != torch.arange(200) % NUM_CLASSES
    state = start(METHOD, s, data)
    for report in fit(METHOD, state, data, s):
        noise = report.figures.get("noise_rate", 0.0)
    judged = METHOD.judge(state, data, s)
    flagged = (judged.clean_prob[0] < 0.5) & (judged.pred_probs.argmax(dim=1) != data.labels)
    assert (flagged & is_wrong).sum() > 0.5 * is_wrong.sum()
    assert (flagged & ~is_wrong).sum() < 0.05 * (~is_wrong).sum()
    assert 0.1 < noise < 0.3  # a quarter are wrong; anchors understate a mistake that is always the same


def test_it_resumes_after_any_epoch_to_the_bit() -> None:
    state = assert_resumes(METHOD, settings_of())
    assert state.samples.keys() == {"history"}


def test_it_trains_on_odd_data() -> None:
    assert_trains_on_odd_data(METHOD)


def test_its_phases_add_up() -> None:
    assert_phases_add_up(METHOD)
    assert [phase.num_epochs for phase in METHOD.phases(settings_of(epochs=1))] == [1, 0]
