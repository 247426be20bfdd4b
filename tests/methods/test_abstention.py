"""Abstention. Oracles: the equations in other forms, gradients in closed form, a net of C + 1 outputs, plain loops."""

import itertools
import json
import math
from pathlib import Path
from typing import Any

import method_checks
import numpy as np
import pytest
import tiny
import torch
from tiny import TinyData, TinyNet, fit, start, tiny_nets, weights_of
from torch import Tensor, nn
from torch.nn import functional as F
from toys import toy_job, trained

import dividemix
from dividemix.engine.state import State
from dividemix.errors import DegenerateDivisionWarning, InputError
from dividemix.methods.abstention import (
    BEST,
    DROPPED,
    FIRST_ALPHA,
    HELD_OUT,
    MEAN_COST,
    METHOD,
    AbstentionSettings,
    abstention_loss,
    abstention_terms,
)

FIELDS: dict[str, Any] = {"epochs": 8, "batch_size": 4, "lr": 0.05, "lr_drop_epoch": 6, "learn_share": 0.25}


def random_logits(rows: int = 6) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return 2 * torch.randn(rows, 4, generator=generator, dtype=torch.float64), torch.arange(rows) % 3


# The loss.


def test_cross_entropy_over_all_outputs_is_h_minus_the_logarithm_of_not_abstaining() -> None:
    logits, labels = random_logits()
    cost, log_kept = abstention_terms(logits, labels)
    q = torch.softmax(logits, dim=1)[:, 3]
    h = F.cross_entropy(logits[:, :3], labels, reduction="none")
    torch.testing.assert_close(log_kept, torch.log(1 - q))
    torch.testing.assert_close(cost, (1 - q) * h)
    torch.testing.assert_close(F.cross_entropy(logits, labels, reduction="none"), h - log_kept)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 2.0])
def test_abstention_grows_where_the_cost_exceeds_alpha(alpha: float) -> None:
    """The gradient at the output "abstain" is q (alpha - (1 - q) h)."""
    logits, labels = random_logits()
    logits.requires_grad_()
    cost, log_kept = abstention_terms(logits, labels)
    (gradient,) = torch.autograd.grad((cost - alpha * log_kept).sum(), logits)
    q = torch.softmax(logits.detach(), dim=1)[:, 3]
    torch.testing.assert_close(gradient[:, 3], q * (alpha - cost.detach()))


@pytest.mark.parametrize("alpha", [0.0, 1.0, 100.0])
def test_a_net_that_never_abstains_has_the_cross_entropy_of_the_classes(alpha: float) -> None:
    logits, labels = random_logits()
    logits[:, 3] = -1000.0
    cost, log_kept = abstention_terms(logits, labels)
    torch.testing.assert_close((cost - alpha * log_kept).mean(), F.cross_entropy(logits[:, :3], labels))


def test_a_net_that_surely_abstains_has_a_finite_loss() -> None:
    logits, labels = random_logits()
    logits[:, 3] = 1000.0
    cost, log_kept = abstention_terms(logits, labels)
    assert (cost - log_kept).isfinite().all()


def test_alpha_begins_at_a_share_of_the_mean_cost_and_ends_at_its_final_value() -> None:
    """Stage 1 has 10 epochs, of which 2 learn; t by hand over five batches in the third."""
    s, data = AbstentionSettings(epochs=20, learn_share=0.2, alpha_final=2.0, alpha_divisor=8.0), TinyData()
    state = start(METHOD, s, data)
    logits, labels = random_logits()
    means = []
    state.epoch = 1
    learn = abstention_loss(state, s)
    for scale in (1.0, 2.0):
        means.append(float(abstention_terms(scale * logits, labels)[0].mean()))
        torch.testing.assert_close(learn(scale * logits, labels), F.cross_entropy(scale * logits, labels))
    t = 0.05 * means[1] + 0.95 * means[0]
    assert float(state.buffers[MEAN_COST]) == pytest.approx(t, rel=1e-6)
    state.epoch, first = 2, 0.0
    abstain = abstention_loss(state, s)
    for scale in (3.0, 4.0):
        cost, log_kept = abstention_terms(scale * logits, labels)
        found = float(abstain(scale * logits, labels))
        t = 0.05 * float(cost.mean()) + 0.95 * t
        first = first or t / 8  # of the first step alone
        assert found == pytest.approx(float((cost - first * log_kept).mean()), rel=1e-5)
    assert float(state.buffers[FIRST_ALPHA]) == pytest.approx(first, rel=1e-5)
    alphas = [float(s.alpha(state.buffers[FIRST_ALPHA], epoch)) for epoch in range(2, 10)]
    assert alphas == pytest.approx([first + (2 - first) * i / 7 for i in range(8)], rel=1e-5)


# The stages.


class WideNet(TinyNet):
    """A net with one more output."""

    def __init__(self, seed: int, weight: Tensor, bias: Tensor):
        super().__init__(seed)
        narrow, self.head = self.head, nn.Linear(8, 4, dtype=torch.float64)
        with torch.no_grad():
            self.head.weight.copy_(torch.cat([narrow.weight, weight]))
            self.head.bias.copy_(torch.cat([narrow.bias, bias]))


def test_stage_1_is_a_plain_loop_over_a_net_with_one_more_output() -> None:
    s, data = AbstentionSettings(**FIELDS, momentum=0.8), TinyData()
    state = start(METHOD, s, data)
    net = WideNet(10, state.buffers["abstain_weight"].detach(), state.buffers["abstain_bias"].detach()).train()
    held_out = set(state.samples[HELD_OUT].nonzero().flatten().tolist())
    reports = list(itertools.islice(fit(METHOD, state, data, s), 4))

    sgd = torch.optim.SGD(net.parameters(), lr=s.lr, momentum=0.8, weight_decay=s.weight_decay)
    asked, t, alpha_0 = zip(data.asked, data.views, strict=True), None, 0.0
    for epoch in range(4):
        sgd.param_groups[0]["lr"] = s.lr if epoch < 3 else s.lr / 10  # 6 of 8 epochs are 3 of 4
        for step, (index, views) in enumerate(itertools.islice(asked, 5)):
            assert not held_out & set(index.tolist())
            logits, labels = net(views), data.labels[index]
            q = torch.softmax(logits, dim=1)[:, 3]
            h = F.cross_entropy(logits[:, :3], labels, reduction="none")
            mean = float(((1 - q) * h).detach().mean())
            t = mean if t is None else 0.05 * mean + 0.95 * t
            if (epoch, step) == (1, 0):
                alpha_0 = t / 64
            alpha = alpha_0 + (1 - alpha_0) * (epoch - 1) / 2
            loss = F.cross_entropy(logits, labels) if epoch < 1 else ((1 - q) * h - alpha * torch.log(1 - q)).mean()
            sgd.zero_grad()
            loss.backward()
            sgd.step()
    assert next(asked, None) is None
    assert len(held_out) == 4
    assert reports[3].figures["alpha"] == pytest.approx(1.0)
    for name, tensor in state.nets[0].state_dict().items():
        expected = net.state_dict()[name]
        torch.testing.assert_close(tensor, expected[:3] if name.startswith("head") else expected, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(state.buffers["abstain_weight"], net.head.weight[3:], rtol=1e-4, atol=1e-6)


def test_samples_are_dropped_at_the_last_of_the_best_epochs_on_those_held_out() -> None:
    s, data = AbstentionSettings(**FIELDS | {"epochs": 16}), TinyData(200)
    state = start(METHOD, s, data)
    held_out, best, dropped = state.samples[HELD_OUT], -1.0, torch.zeros(200, dtype=torch.bool)
    assert int(held_out.sum()) == 20
    for report in itertools.islice(fit(METHOD, state, data, s), 8):
        if report.phase == "abstain":
            with torch.no_grad():
                right = state.nets[0].eval()(data.images).argmax(dim=1) == data.labels
            accuracy = float(right[held_out].double().mean())
            if accuracy >= best:
                best, dropped = accuracy, ~right
        assert torch.equal(state.samples[DROPPED], dropped)
    assert float(state.buffers[BEST]) == best
    assert 0.15 < float(dropped.double().mean()) < 0.45  # 30 % of the labels are wrong


def test_stage_2_is_ordinary_training_from_the_first_weights_on_what_is_left() -> None:
    s, data = AbstentionSettings(**FIELDS), TinyData()
    state = start(METHOD, s, data)
    first = weights_of(state.nets[0])
    epochs = fit(METHOD, state, data, s)
    for _ in range(4):
        next(epochs)
    kept = set((~state.samples[DROPPED]).nonzero().flatten().tolist())
    data.asked.clear()
    data.views.clear()
    phases = [report.phase for report in epochs]
    assert phases == ["retrain"] * 4
    assert set(torch.cat(data.asked).tolist()) == kept
    assert 0 < len(kept) < 40

    other = State.start(tiny_nets(num_nets=1), s)
    other.nets[0].load_state_dict(first)
    other.nets[0].train()
    asked = zip(data.asked, data.views, strict=True)
    for epoch in range(4):
        other.learners[0].optimizer.param_groups[0]["lr"] = s.lr if epoch < 3 else s.lr / 10
        for index, views in itertools.islice(asked, math.ceil(len(kept) / 8)):
            other.learners[0].descend(F.cross_entropy(other.nets[0](views), data.labels[index]))
    assert next(asked, None) is None
    for name, tensor in state.nets[0].state_dict().items():
        torch.testing.assert_close(tensor, other.nets[0].state_dict()[name])


def test_if_every_sample_was_dropped_all_are_kept() -> None:
    s, data = AbstentionSettings(**FIELDS), TinyData()
    state = start(METHOD, s, data)
    epochs = fit(METHOD, state, data, s)
    for _ in range(4):
        next(epochs)
    state.samples[DROPPED].fill_(True)
    with pytest.warns(DegenerateDivisionWarning, match="all samples are kept"):
        next(epochs)


class Doubled(nn.Module):
    """A net whose logits do not come from a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.net = TinyNet(0)

    def forward(self, images: Tensor) -> Tensor:
        """The logits of the first three outputs."""
        logits: Tensor = self.net(images)
        return 2 * logits[:, :3]


def test_a_net_whose_logits_are_not_those_of_its_last_linear_layer_is_refused() -> None:
    s, data = AbstentionSettings(**FIELDS), TinyData()
    with pytest.raises(InputError, match=r"the last nn\.Linear of the net, which must give its logits"):
        next(fit(METHOD, start(METHOD, s, data, nets=[Doubled()]), data, s))


def test_predictions_have_an_output_for_each_class_in_every_phase() -> None:
    s, data = AbstentionSettings(**FIELDS), TinyData()
    state = start(METHOD, s, data)
    for _ in fit(METHOD, state, data, s):
        assert state.nets[0].eval()(data.images).shape == (40, tiny.NUM_CLASSES)
        assert METHOD.judge(state, data, s).pred_probs.shape == (40, tiny.NUM_CLASSES)
    assert state.nets[0].state_dict().keys() == tiny_nets(num_nets=1)[0].state_dict().keys()


def test_the_saved_model_has_an_output_for_each_class(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", toy_job(tmp_path, method="abstention"))
    model = dividemix.Model.from_pretrained(tmp_path / "run")
    images = run.material.train.pixels(np.arange(8))
    probs = model.predict_proba(images)
    assert probs.shape == (8, 4)
    assert len(json.loads((tmp_path / "run" / "model" / "config.json").read_text())["classes"]) == 4


def test_its_phases_add_up() -> None:
    method_checks.assert_phases_add_up(METHOD)
    phases = METHOD.phases(AbstentionSettings(epochs=400))
    assert [(phase.name, phase.num_epochs) for phase in phases] == [("learn", 20), ("abstain", 180), ("retrain", 200)]


def test_resumed_it_continues_to_the_bit() -> None:
    method_checks.assert_resumes(METHOD, AbstentionSettings(**FIELDS))


@pytest.mark.filterwarnings("ignore::dividemix.errors.DegenerateDivisionWarning")
def test_it_trains_on_odd_data() -> None:
    method_checks.assert_trains_on_odd_data(METHOD, **FIELDS)
    for epochs in (1, 2, 3):
        method_checks.assert_trains_on_odd_data(METHOD, **FIELDS | {"epochs": epochs})
