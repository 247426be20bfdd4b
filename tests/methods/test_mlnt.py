"""MLNT. Oracles: finite differences, neighbours by loops, one step by hand, identities at a = 0 and rho = 0."""

import math
from typing import Any

import pytest
import torch
from method_checks import SHORT, assert_phases_add_up, assert_published_fit, assert_resumes, assert_trains_on_odd_data
from method_checks import started as start
from tiny import TinyData, TinyNet, copied, same, weights_of
from torch import Tensor
from torch.func import functional_call
from torch.nn import functional as F

from dividemix.algorithm.ensemble import predict_probs
from dividemix.engine.state import under
from dividemix.errors import InputError
from dividemix.methods import METHODS, loop
from dividemix.methods.last_layer import features_of_all
from dividemix.methods.method import TrainingSets
from dividemix.methods.mlnt import (
    METHOD,
    PUBLISHED,
    MLNTSettings,
    follow,
    meta_gradient,
    mislabeled,
    neighbours,
    trained,
)

FIELDS: dict[str, Any] = {**SHORT, "epochs": 5, "baseline_share": 0.4, "num_branches": 2, "num_neighbours": 3}


def scene(seed: int = 0) -> tuple[TinyNet, Tensor, Tensor, list[Tensor]]:
    """A net, a batch, a teacher's predictions and three mislabelings."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(8, 1, 2, 3, generator=generator, dtype=torch.float64)
    q = F.softmax(torch.randn(8, 3, generator=generator, dtype=torch.float64), dim=1)
    return TinyNet(seed).train(), x, q, [torch.randint(3, (8,), generator=generator) for _ in range(3)]


def agreement(net: TinyNet, values: dict[str, Tensor], x: Tensor, q: Tensor, labels: Tensor, a: float) -> Tensor:
    """KL(q || f_theta^m(x)) for parameters `values`, by the equations."""

    def forward(values: dict[str, Tensor]) -> Tensor:
        buffers = {name: buffer.clone() for name, buffer in net.named_buffers()}
        logits: Tensor = functional_call(net, (values, buffers), (x,))
        return logits

    values = {name: value.detach().requires_grad_() for name, value in values.items()}
    steps = torch.autograd.grad(F.cross_entropy(forward(values), labels), list(values.values()))
    moved = {name: value - a * step for (name, value), step in zip(values.items(), steps, strict=True)}
    log_p = F.log_softmax(forward(moved), dim=1)
    return ((q * (q.log() - log_p)).sum() / len(x)).detach()


# The meta-gradient.


@pytest.mark.parametrize("second_order", [False, True])
def test_without_a_synthetic_step_it_is_the_gradient_of_a_mean_teacher(second_order: bool) -> None:
    net, x, q, branches = scene()
    logits = net(x)
    divergence = F.kl_div(F.log_softmax(logits, dim=1), q, reduction="batchmean")
    expected = torch.autograd.grad(divergence, list(net.parameters()), retain_graph=True)
    value, gradient = meta_gradient(net, x, logits, q, branches, 0.0, second_order)
    torch.testing.assert_close(value.double(), divergence.detach(), rtol=1e-6, atol=0)
    for found, part in zip(gradient, expected, strict=True):
        torch.testing.assert_close(found, part, rtol=1e-9, atol=1e-12)


def test_the_second_order_gradient_is_that_of_finite_differences() -> None:
    net, x, q, branches = scene()
    values = copied(dict(net.named_parameters()))
    value, gradient = meta_gradient(net, x, net(x), q, branches, 0.5, True)
    by_hand = sum(float(agreement(net, values, x, q, labels, 0.5)) for labels in branches) / 3
    assert value.item() == pytest.approx(by_hand, rel=1e-6)
    step = 1e-5
    for (name, value_of), part in zip(values.items(), gradient, strict=True):
        for place in (0, value_of.numel() - 1):
            sides = []
            for sign in (1, -1):
                shifted = copied(values)
                shifted[name].view(-1)[place] += sign * step
                sides.append(sum(float(agreement(net, shifted, x, q, labels, 0.5)) for labels in branches) / 3)
            assert float(part.view(-1)[place]) == pytest.approx((sides[0] - sides[1]) / (2 * step), rel=1e-4, abs=1e-8)


def test_the_first_order_gradient_is_taken_where_the_synthetic_step_ends() -> None:
    net, x, q, branches = scene()
    logits = net(x)
    values = copied(dict(net.named_parameters()))
    expected = {name: torch.zeros_like(value) for name, value in values.items()}
    for labels in branches:
        steps = torch.autograd.grad(F.cross_entropy(logits, labels), list(net.parameters()), retain_graph=True)
        other = TinyNet(0).train()
        with torch.no_grad():
            for (name, parameter), moved in zip(other.named_parameters(), steps, strict=True):
                parameter.copy_(values[name] - 0.5 * moved)
        F.kl_div(F.log_softmax(other(x), dim=1), q, reduction="batchmean").backward()
        for name, parameter in other.named_parameters():
            assert parameter.grad is not None
            expected[name] += parameter.grad / 3
    _, first = meta_gradient(net, x, logits, q, branches, 0.5, False)
    for found, part in zip(first, expected.values(), strict=True):
        torch.testing.assert_close(found, part, rtol=1e-9, atol=1e-12)
    _, second = meta_gradient(net, x, logits, q, branches, 0.5, True)
    flat = [torch.cat([part.flatten() for part in parts]) for parts in (first, second)]
    assert 0.5 < float(F.cosine_similarity(flat[0], flat[1], dim=0)) < 0.9999


def test_branches_change_neither_the_weights_nor_the_statistics() -> None:
    net, x, q, branches = scene()
    logits = net(x)
    before = weights_of(net)
    meta_gradient(net, x, logits, q, branches, 0.5, False)
    assert same(before, weights_of(net))


# Mislabelings and the teacher.


def test_the_neighbours_are_the_nearest_others() -> None:
    features = torch.randn(9, 4, generator=torch.Generator().manual_seed(0))
    for i, row in enumerate(neighbours(features, 3)):
        others = sorted((j for j in range(9) if j != i), key=lambda j: float((features[i] - features[j]).norm()))
        assert set(row.tolist()) == set(others[:3])
    assert neighbours(features, 20).shape == (9, 8)


def test_a_mislabeling_replaces_a_share_by_labels_of_neighbours() -> None:
    generator = torch.Generator().manual_seed(0)
    labels, near = torch.arange(20), neighbours(torch.randn(20, 4, generator=generator), 5)
    changed = mislabeled(labels, near, 0.5, generator)
    places = (changed != labels).nonzero().squeeze(1).tolist()
    assert len(places) == 10
    for i in places:
        assert int(changed[i]) in near[i].tolist()
    assert torch.equal(mislabeled(labels, near, 0.0, generator), labels)


def test_without_mislabeled_samples_all_branches_are_equal() -> None:
    net, x, q, _ = scene()
    labels, near = torch.arange(8) % 3, neighbours(x.flatten(1), 3)
    generator = torch.Generator().manual_seed(0)
    branches = [mislabeled(labels, near, 0.0, generator) for _ in range(3)]
    three, one = (meta_gradient(net, x, net(x), q, some, 0.5, False)[0] for some in (branches, branches[:1]))
    torch.testing.assert_close(three, one)


def test_the_teacher_is_a_running_mean_of_parameters_alone() -> None:
    teacher, net = TinyNet(0), TinyNet(1)
    expected = {name: 0.9 * a + 0.1 * trained(net)[name] for name, a in trained(teacher).items()}
    statistics = copied(dict(teacher.named_buffers()))
    follow(teacher, net, 0.9)
    for name, parameter in teacher.named_parameters():
        torch.testing.assert_close(parameter, expected[name])
    assert same(statistics, dict(teacher.named_buffers()))
    follow(teacher, net, 0.0)
    assert same(dict(teacher.named_parameters()), dict(net.named_parameters()))


# Training.


def test_a_step_descends_cross_entropy_plus_the_ramped_agreement() -> None:
    """The first step of a round: the teacher is a copy; rho is 0, so each branch is a step on the given labels."""
    s = MLNTSettings(
        **{**FIELDS, "epochs": 1, "baseline_share": 0.0, "batch_size": 20, "momentum": 0.0, "flip_share": 0.0}
    )
    data = TinyData()
    sets = TrainingSets(data)
    state = start(METHOD, s, sets)
    net, teacher = TinyNet(10).train(), TinyNet(10).train()
    (report,) = loop.fit(METHOD, state, sets, s)
    (x,), (index,) = data.views, data.asked
    labels = data.labels[index]
    q = F.softmax(teacher(x), dim=1).detach()
    logits = net(x)
    loss = F.cross_entropy(logits, labels)
    ordinary = torch.autograd.grad(loss, list(net.parameters()), retain_graph=True)
    consistency, meta = meta_gradient(net, x, logits, q, [labels], s.inner_lr, False)
    assert report.losses["loss"][0] == pytest.approx(loss.item(), rel=1e-5)
    assert report.losses["consistency"][0] == pytest.approx(consistency.item(), rel=1e-5)
    for (name, parameter), a, b in zip(net.named_parameters(), ordinary, meta, strict=True):
        gradient = a + s.meta_weight * b + s.weight_decay * parameter
        torch.testing.assert_close(dict(state.nets[0].named_parameters())[name], parameter - s.lr * gradient)


def test_the_weight_of_the_agreement_grows_over_a_sixth_of_a_round() -> None:
    """With a = 0 and rho = 0 the first step's gradient is CE + kappa exp(-5 (1 - u)^2) KL, u = 1 / (60 / 6)."""
    s = MLNTSettings(
        **{**FIELDS, "epochs": 12, "baseline_share": 0.0, "inner_lr": 0.0, "momentum": 0.0, "weight_decay": 0.0},
        meta_weight=100.0,
    )
    data = TinyData()
    sets = TrainingSets(data)
    state = start(METHOD, s, sets)
    assert math.ceil(len(data.labels) / 8) == 5
    teacher, net = TinyNet(10).train(), TinyNet(10).train()
    next(loop.fit(METHOD, state, sets, s))
    ramp, sgd = [math.exp(-5 * (1 - u / 10) ** 2) for u in range(1, 6)], torch.optim.SGD(net.parameters(), lr=s.lr)
    for step, (index, x) in enumerate(zip(data.asked, data.views, strict=True)):
        follow(teacher, net, 1 - 10 / (10 + step))
        with torch.no_grad():
            q = F.softmax(teacher(x), dim=1)
        logits = net(x)
        divergence = F.kl_div(F.log_softmax(logits, dim=1), q, reduction="batchmean")
        sgd.zero_grad()
        (F.cross_entropy(logits, data.labels[index]) + 100 * ramp[step] * divergence).backward()
        sgd.step()
    for name, parameter in net.named_parameters():
        torch.testing.assert_close(dict(state.nets[0].named_parameters())[name], parameter)
    assert state.predictors[0] is not state.nets[0]
    for name, parameter in teacher.named_parameters():
        torch.testing.assert_close(dict(state.predictors[0].named_parameters())[name], parameter)


def test_each_part_starts_with_the_first_weights_and_the_full_rate() -> None:
    s = MLNTSettings(**{**FIELDS, "epochs": 8, "baseline_share": 0.25, "lr_drop_epoch": 4}, rounds=3)
    assert [(phase.name, phase.num_epochs) for phase in METHOD.phases(s)] == [
        ("baseline", 2),
        ("round 1", 2),
        ("round 2", 2),
        ("round 3", 2),
    ]
    data = TinyData()
    sets = TrainingSets(data)
    state = start(METHOD, s, sets)
    rates, features = [], None
    for report in loop.fit(METHOD, state, sets, s):
        rates.append(state.learners[0].optimizer.param_groups[0]["lr"])
        assert report.selects == (report.phase == "round 3")
        assert ("mentor" in state.samples) == (report.epoch > 4)
        assert (report.figures != {}) == (report.epoch > 4)
        if report.epoch == 2:
            features = features_of_all(state.nets[0], data)
    assert rates == pytest.approx([0.05, 0.005] * 4)
    assert features is not None
    assert torch.equal(state.samples["features"], features)
    first = under("first_weights.0.", state.buffers)
    assert first.keys() == state.nets[0].state_dict().keys()
    assert same(first, TinyNet(10).state_dict())


def test_the_mentor_is_the_last_rounds_teacher_and_drops_labels() -> None:
    s, data = MLNTSettings(**{**FIELDS, "epochs": 4, "baseline_share": 0.0}, rounds=2, mentor_threshold=1.0), TinyData()
    sets = TrainingSets(data)
    state = start(METHOD, s, sets)
    epochs = loop.fit(METHOD, state, sets, s)
    next(epochs)
    next(epochs)
    expected = predict_probs([state.predictors[0]], data)[0].float()
    report = next(epochs)
    assert torch.equal(state.samples["mentor"], expected)
    assert report.figures == {"kept_share": 0.0}
    assert report.losses["loss"] == [0]
    assert report.losses["consistency"][0] > 0


def test_while_the_baseline_trains_it_predicts() -> None:
    s, data = MLNTSettings(**FIELDS), TinyData()
    sets = TrainingSets(data)
    state = start(METHOD, s, sets)
    next(loop.fit(METHOD, state, sets, s))
    assert same(weights_of(state.nets[0]), weights_of(state.predictors[0]))


@pytest.mark.parametrize("fields", [{}, {"rounds": 3, "epochs": 7}, {"second_order": True}])
def test_resumed_it_continues_to_the_bit(fields: dict[str, Any]) -> None:
    assert_resumes(METHOD, MLNTSettings(**{**FIELDS, **fields}), TrainingSets(TinyData()))


@pytest.mark.parametrize("rounds", [1, 3])
def test_it_trains_anything(rounds: int) -> None:
    assert_trains_on_odd_data(METHOD, **FIELDS, rounds=rounds)


def test_it_is_a_method_with_phases_for_any_number_of_epochs() -> None:
    assert METHODS["mlnt"] is METHOD
    assert METHOD.double_backward
    for rounds in (1, 3):
        assert_phases_add_up(METHOD, rounds=rounds)
    assert_published_fit(METHOD, PUBLISHED)


def test_so_many_branches_that_no_step_would_end_are_refused() -> None:
    with pytest.raises(InputError, match=r"^num_branches is 1000000000: it must be an integer >= 1 and <= 1000$"):
        MLNTSettings(num_branches=10**9)
