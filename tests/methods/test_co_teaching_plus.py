"""Co-teaching+. Oracles: Co-teaching and Decoupling in the cases where they are the same, and a plain loop."""

import itertools
from typing import Any

import method_checks
import pytest
import torch
from tiny import TinyData, Weights, copied, fit, same, start, tiny_nets
from torch.nn import functional as F
from torch.optim import SGD

from dividemix.engine.state import State
from dividemix.methods import co_teaching, decoupling
from dividemix.methods.co_teaching_plus import METHOD, CoTeachingPlusSettings

FIELDS: dict[str, Any] = {"epochs": 6, "batch_size": 4, "lr": 0.05, "lr_drop_epoch": 5, "ramp_share": 0.5}
RULES: dict[str, Any] = {"noise_rate": 0.4, "co_teaching_share": 1 / 3}


def parameters(state: State) -> list[Weights]:
    return [copied(dict(net.named_parameters())) for net in state.nets]


def test_it_is_a_plain_loop_over_the_samples_of_disagreement() -> None:
    s, data = CoTeachingPlusSettings(**FIELDS, **RULES), TinyData()
    state = start(METHOD, s, data)
    reports = list(fit(METHOD, state, data, s))

    nets = [net.train() for net in tiny_nets()]
    optimizers = [SGD(net.parameters(), lr=s.lr, momentum=s.momentum, weight_decay=s.weight_decay) for net in nets]
    asked, sizes = zip(data.asked, data.views, strict=True), []
    for epoch in range(6):
        kept, num_disagreed = 1 - 0.4 * min(epoch / 3, 1), 0
        for index, views in itertools.islice(asked, 5):
            labels = data.labels[index]
            logits = [net(views) for net in nets]
            used = [i for i in range(8) if epoch < 2 or logits[0][i].argmax() != logits[1][i].argmax()]
            num_disagreed += len(used)
            if not used:
                continue
            easiest = []
            for own in logits:
                losses = F.cross_entropy(own, labels, reduction="none").tolist()
                easiest.append(sorted(used, key=losses.__getitem__)[: max(1, int(kept * len(used)))])
            for k, (sgd, own) in enumerate(zip(optimizers, logits, strict=True)):
                sgd.param_groups[0]["lr"] = s.learning_rate(epoch)
                sgd.zero_grad()
                F.cross_entropy(own[easiest[1 - k]], labels[easiest[1 - k]]).backward()
                sgd.step()
        sizes.append(num_disagreed / 40)
    assert [report.figures["disagreement"] for report in reports[2:]] == pytest.approx(sizes[2:])
    assert 0 < sizes[2] < 1
    for net, expected in zip(state.nets, nets, strict=True):
        for name, tensor in net.state_dict().items():
            torch.testing.assert_close(tensor, expected.state_dict()[name])


@pytest.mark.parametrize("noise_rate", [None, 0.4])
def test_if_its_first_phase_never_ends_it_is_co_teaching_to_the_bit(noise_rate: float | None) -> None:
    s, data = CoTeachingPlusSettings(**FIELDS, noise_rate=noise_rate, co_teaching_share=1.0), TinyData()
    state, other = start(METHOD, s, data), start(co_teaching.METHOD, s, data)
    losses = [report.losses for report in fit(METHOD, state, data, s)]
    assert losses == [report.losses for report in fit(co_teaching.METHOD, other, data, s)]
    assert same(state.tensors(), other.tensors())


def test_nets_that_are_the_same_stop_moving_after_the_first_phase() -> None:
    s, data = CoTeachingPlusSettings(**FIELDS, **RULES), TinyData()
    nets = [tiny_nets(num_nets=1)[0] for _ in range(2)]
    state = start(METHOD, s, data, nets=nets)
    epochs = fit(METHOD, state, data, s)
    untrained = parameters(state)
    next(epochs)
    next(epochs)
    after = parameters(state)
    assert not same(untrained[0], after[0])
    for report in epochs:
        assert report.figures["disagreement"] == 0
        assert report.losses["loss"] == [0, 0]
    assert all(same(a, b) for a, b in zip(parameters(state), after, strict=True))


def test_nets_that_disagree_everywhere_take_the_steps_of_co_teaching() -> None:
    """Opposite heads: one net's largest logit is the other one's smallest."""
    fields = FIELDS | RULES | {"lr": 1e-9, "co_teaching_share": 0.0}  # such steps leave them opposite
    s, data = CoTeachingPlusSettings(**fields), TinyData()
    states = []
    for method in (METHOD, co_teaching.METHOD):
        nets = [tiny_nets(num_nets=1)[0] for _ in range(2)]
        for parameter in nets[1].get_submodule("head").parameters():
            parameter.data.neg_()
        states.append(start(method, s, data, nets=nets))
        reports = list(fit(method, states[-1], data, s))
        assert method is not METHOD or {report.figures["disagreement"] for report in reports} == {1.0}
    assert same(*(state.tensors() for state in states))


def test_if_nothing_is_dropped_it_is_decoupling() -> None:
    """While a tenth of a batch disagrees: one sample of 8, so always."""
    fields: dict[str, Any] = {**FIELDS, "seed": 2}  # the nets never agree on all samples
    s, data = CoTeachingPlusSettings(**fields, noise_rate=0.0, co_teaching_share=0.0), TinyData()
    state = start(METHOD, s, data)
    plain = decoupling.DecouplingSettings(**{k: v for k, v in fields.items() if k != "ramp_share"}, warmup_share=0.0)
    other = start(decoupling.METHOD, plain, data)
    for report, expected in zip(fit(METHOD, state, data, s), fit(decoupling.METHOD, other, data, plain), strict=True):
        assert report.losses["loss"] == pytest.approx(expected.losses["loss"])
        assert report.figures["disagreement"] == expected.figures["disagreement"] > 0


def test_its_phases_add_up_and_the_first_one_scales() -> None:
    method_checks.assert_phases_add_up(METHOD)
    assert [CoTeachingPlusSettings(epochs=epochs).co_teaching_epochs for epochs in (1, 4, 10, 200)] == [1, 1, 1, 20]
    assert CoTeachingPlusSettings(co_teaching_share=0.0).co_teaching_epochs == 0


@pytest.mark.parametrize("noise_rate", [None, 0.3])
def test_resumed_it_continues_to_the_bit(noise_rate: float | None) -> None:
    s = CoTeachingPlusSettings(**FIELDS, noise_rate=noise_rate, co_teaching_share=1 / 3)
    method_checks.assert_resumes(METHOD, s)


@pytest.mark.parametrize("noise_rate", [None, 1.0])
def test_it_trains_on_odd_data(noise_rate: float | None) -> None:
    method_checks.assert_trains_on_odd_data(METHOD, **FIELDS, noise_rate=noise_rate, co_teaching_share=1 / 3)
