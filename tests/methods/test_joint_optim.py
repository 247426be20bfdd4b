"""Joint-Optim. Oracles: loops over rows and epochs from the equations, cross-entropy where it corrects nothing."""

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
from tiny import NUM_CLASSES, TinyData, copied, fit, record, start, weights_of
from torch import Tensor
from torch.nn import functional as F

from dividemix.methods import METHODS
from dividemix.methods.joint_optim import METHOD, PUBLISHED, JointOptimSettings, corrected
from dividemix.methods.joint_optim import record as record_probs
from dividemix.methods.method import MethodSettings


def settings_of(**fields: Any) -> JointOptimSettings:
    """8 epochs: 2 with the given labels, 3 that correct, 3 final ones; labels are first corrected after the second."""
    return JointOptimSettings(**{**SHORT, "final_from": 0.6, **fields})


def loss_by_loops(logits: oracles.Rows, targets: oracles.Rows, alpha: float, beta: float) -> float:
    """L_c + alpha L_p + beta L_e."""
    rows = [oracles.log_softmax(row) for row in logits]
    l_c = oracles.loss_x(logits, targets)
    l_e = -math.fsum(math.exp(entry) * entry for row in rows for entry in row)
    means = [math.fsum(math.exp(row[c]) for row in rows) / len(rows) for c in range(NUM_CLASSES)]
    l_p = math.fsum(math.log(1 / NUM_CLASSES / mean) / NUM_CLASSES for mean in means)
    return l_c + alpha * l_p + beta * l_e / len(rows)


# A whole training, watched.


def test_every_epoch_has_the_loss_and_the_labels_of_the_equations() -> None:
    """From the recorded logits alone: losses, the predictions of each epoch, and the labels that they make."""
    s, data = settings_of(window=2), TinyData(41)  # samples are drawn again to fill the last batch
    state = start(METHOD, s, data)
    epochs = fit(METHOD, state, data, s)
    targets: Tensor = F.one_hot(data.labels, NUM_CLASSES).double()
    history: list[Tensor] = []
    for epoch in range(8):
        data.asked.clear()
        report, calls = record(state, epochs)
        assert report.phase == ("given" if epoch < 2 else "correct" if epoch < 5 else "final")
        alpha, beta = (s.prior_weight, s.entropy_weight) if epoch < 5 else (0.0, 0.0)
        losses, probs = [], torch.full((41, NUM_CLASSES), math.nan, dtype=torch.float64)
        for call, index in zip(calls, data.asked, strict=True):
            assert call.training
            losses.append(loss_by_loops(call.logits.tolist(), targets[index].tolist(), alpha, beta))
            probs[index] = call.logits.softmax(dim=1)
        assert report.losses["loss"] == pytest.approx([math.fsum(losses) / len(losses)], rel=1e-5)
        history.append(probs)
        if 1 <= epoch < 5:
            targets = torch.stack(history[-2:]).mean(dim=0)
            soft = state.samples["soft_labels"]
            torch.testing.assert_close(soft.double(), targets, rtol=0, atol=1e-6)
            changed = (targets.argmax(dim=1) != data.labels).double().mean().item()
            assert report.figures["noise_rate"] == pytest.approx(changed)
        else:
            assert "noise_rate" not in report.figures


def test_without_correction_and_penalties_it_is_cross_entropy_to_the_bit() -> None:
    s = settings_of(correct_from=1.0, final_from=1.0, prior_weight=0.0, entropy_weight=0.0)
    plain, data = MethodSettings(**{**SHORT, "lr_drop_epoch": 100}), TinyData()
    other = start(METHODS["cross_entropy"], plain, data)
    losses = [report.losses for report in fit(METHODS["cross_entropy"], other, data, plain)]
    state = start(METHOD, s, data)
    assert losses == [report.losses for report in fit(METHOD, state, data, s)]
    for name, tensor in other.tensors().items():
        assert torch.equal(tensor, state.tensors()[name]), name


def test_the_final_stage_starts_from_the_first_weights_and_leaves_the_labels_alone() -> None:
    """Oracle: a rate so small that its steps change nothing in float64."""
    s, data = settings_of(), TinyData()
    state = start(METHOD, s, data)
    before = weights_of(state.nets[0])
    for _ in itertools.islice(fit(METHOD, state, data, s), 5):
        pass
    assert not torch.equal(weights_of(state.nets[0])["head.weight"], before["head.weight"])
    labels = copied(state.samples)["soft_labels"]
    next(fit(METHOD, state, data, settings_of(final_lr=1e-300)))
    for name in ("body.weight", "head.weight", "head.bias"):
        assert torch.equal(weights_of(state.nets[0])[name], before[name])
    for _ in fit(METHOD, state, data, s):
        assert torch.equal(state.samples["soft_labels"], labels)
    assert state.samples.keys() == {"soft_labels"}


def test_its_opinion_is_the_share_of_the_given_label() -> None:
    s, data = settings_of(), TinyData()
    state = start(METHOD, s, data)
    for _ in fit(METHOD, state, data, s):
        pass
    judged, soft = METHOD.judge(state, data, s), state.samples["soft_labels"]
    for i, label in enumerate(data.labels.tolist()):
        assert judged.clean_prob[0, i].item() == pytest.approx(float(soft[i, label]))


def test_it_corrects_wrong_labels_of_separable_data() -> None:
    """Wrong labels are those that TinyData drew: sample i is of class i % 3."""
    s, data = settings_of(epochs=40, lr=0.1, entropy_weight=0.1), TinyData(120, noise=0.25)
    state = start(METHOD, s, data)
    for _ in fit(METHOD, state, data, s):
        pass
    true = torch.arange(120) % NUM_CLASSES
    wrong_before = (data.labels != true).double().mean()
    wrong_after = (state.samples["soft_labels"].argmax(dim=1) != true).double().mean()
    assert wrong_after < wrong_before / 2


# The ring of predictions.


def test_constant_predictions_become_the_labels_exactly() -> None:
    probs = torch.rand(6, 3, generator=torch.Generator().manual_seed(0)).softmax(dim=1)
    samples: dict[str, Tensor] = {}
    for _ in range(13):
        record_probs(samples, probs, 10)
        assert torch.equal(corrected(samples, torch.zeros(6, dtype=torch.int64)), probs)


def test_a_label_is_the_mean_of_the_last_epochs_that_had_the_sample() -> None:
    """Oracle: a list for each sample. Epochs lack samples where batches are balanced."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.tensor([0, 1, 2, 0, 1])
    samples: dict[str, Tensor] = {}
    lists: list[list[Tensor]] = [[] for _ in range(5)]
    for _ in range(9):
        probs = torch.randn(5, 3, generator=generator).softmax(dim=1)
        present = torch.rand(5, generator=generator) < 0.5
        present[4] = False
        record_probs(samples, probs * present[:, None], 3)
        for i in present.nonzero().flatten().tolist():
            lists[i].append(probs[i])
        found = corrected(samples, labels)
        for i, entries in enumerate(lists):
            expected = torch.stack(entries[-3:]).mean(dim=0) if entries else F.one_hot(labels, 3)[i].float()
            torch.testing.assert_close(found[i], expected)
        torch.testing.assert_close(found.sum(dim=1), torch.ones(5), rtol=0, atol=1e-6)


# What every method must stand.


@pytest.mark.parametrize("fields", [{}, {"window": 2}, {"balanced_batches": 2}], ids=str)
def test_resumed_it_continues_to_the_bit(fields: dict[str, Any]) -> None:
    assert_resumes(METHOD, settings_of(**fields))


@pytest.mark.parametrize("fields", [{}, {"balanced_batches": 1}, {"correct_from": 0.0, "final_from": 0.0}], ids=str)
def test_it_stands_degenerate_data(fields: dict[str, Any]) -> None:
    assert_trains_on_odd_data(METHOD, **fields)


def test_its_phases_and_published_settings() -> None:
    assert_phases_add_up(METHOD)
    assert_published_fit(METHOD, PUBLISHED)
