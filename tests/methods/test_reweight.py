"""L2RW. Oracles: a loop over the samples' gradients on one forward, the unrolled step of the paper, invariances."""

from typing import Any

import pytest
import torch
from method_checks import SHORT, assert_phases_add_up, assert_published_fit, assert_resumes, assert_trains_on_odd_data
from method_checks import started as start
from tiny import TinyData, TinyNet, copied, same, weights_of
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from dividemix.engine.acceleration import autocast_net
from dividemix.methods import METHODS, cross_entropy, loop
from dividemix.methods.method import MethodSettings, TrainingSets
from dividemix.methods.reweight import METHOD, PUBLISHED, ReweightSettings, weights
from dividemix.nets.small_cnn import SmallCNN

FIELDS: dict[str, Any] = {**SHORT, "epochs": 4, "warmup_share": 0.5}


def batch(seed: int, rows: int = 8) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, 1, 2, 3, generator=generator, dtype=torch.float64)
    return x, torch.randint(3, (rows,), generator=generator)


def gradient(net: nn.Module, loss: Tensor) -> Tensor:
    """The gradient as one vector; the graph stays."""
    parts = torch.autograd.grad(loss, list(net.parameters()), retain_graph=True)
    return torch.cat([part.flatten() for part in parts])


def slow_weights(net: nn.Module, x: Tensor, y: Tensor, trusted_x: Tensor, trusted_y: Tensor) -> Tensor:
    """The equations as a loop; BatchNorm joins the samples, so there is one forward for all of them."""
    g_v = gradient(net, F.cross_entropy(net(trusted_x), trusted_y))
    logits = net(x)
    raw = [
        max(0.0, float(gradient(net, F.cross_entropy(logits[i : i + 1], y[i : i + 1])) @ g_v)) for i in range(len(x))
    ]
    total = sum(raw)
    return torch.tensor([value / total if total else 0.0 for value in raw], dtype=torch.float64)


@pytest.mark.parametrize("seed", range(5))
def test_the_weights_are_those_of_a_loop_over_the_samples_gradients(seed: int) -> None:
    net = TinyNet(seed).train()
    noisy, trusted = batch(seed), batch(seed + 100)
    found = weights(net, *noisy, *trusted)
    assert found.sum().item() == pytest.approx(1)
    assert 0 < (found > 0).sum() < len(found)
    torch.testing.assert_close(found, slow_weights(net, *noisy, *trusted), rtol=1e-9, atol=1e-12)


def test_a_net_in_bfloat16_gets_the_weights_of_float32() -> None:
    """The laboratory found it: a traceback of torch on a CPU, where bfloat16 may be the default."""
    net = SmallCNN(num_classes=3, in_channels=1, width=2).train()
    generator = torch.Generator().manual_seed(0)
    noisy, trusted = ((torch.randn(8, 1, 8, 8, generator=generator), torch.arange(8) % 3) for _ in range(2))
    expected = weights(net, *noisy, *trusted)
    before = weights_of(net)
    autocast_net(net, torch.device("cpu"), torch.bfloat16)
    assert torch.equal(weights(net, *noisy, *trusted), expected)
    assert same(weights_of(net), before)


def test_they_are_the_descent_of_the_trusted_loss_after_an_unrolled_step() -> None:
    """The paper's way: a step with weights epsilon, then minus the gradient by epsilon at 0, clipped and normalised."""
    net = TinyNet(1).train()
    (x, y), (trusted_x, trusted_y) = batch(1), batch(2)
    parameters = {name: value.detach().requires_grad_() for name, value in net.named_parameters()}

    def losses(values: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        buffers = {name: buffer.clone() for name, buffer in net.named_buffers()}
        return F.cross_entropy(functional_call(net, (values, buffers), (x,)), y, reduction="none")

    epsilon = torch.zeros(8, dtype=torch.float64, requires_grad=True)
    inner = (epsilon * losses(parameters, x, y)).sum()
    steps = torch.autograd.grad(inner, list(parameters.values()), create_graph=True)
    moved = {name: value - 0.1 * step for (name, value), step in zip(parameters.items(), steps, strict=True)}
    (by_epsilon,) = torch.autograd.grad(losses(moved, trusted_x, trusted_y).mean(), epsilon)
    expected = (-by_epsilon).clamp(min=0)
    torch.testing.assert_close(weights(net, x, y, trusted_x, trusted_y), expected / expected.sum(), rtol=1e-9, atol=0)


def test_a_wrong_label_among_the_trusted_images_weighs_less_than_the_others() -> None:
    """The trusted batch has the same images; one training label is flipped. Over seeds its mean weight is lower."""
    flipped, others = [], []
    for seed in range(20):
        net = TinyNet(seed).train()
        x, y = batch(seed)
        noisy = y.clone()
        noisy[0] = (y[0] + 1) % 3
        found = weights(net, x, noisy, x, y)
        flipped.append(found[0])
        others.append(found[1:].mean())
    assert torch.stack(flipped).mean() < 0.5 * torch.stack(others).mean()


def test_the_size_of_the_trusted_gradient_does_not_matter() -> None:
    net = TinyNet(0).train()
    (x, y), (trusted_x, trusted_y) = batch(0), batch(1)
    twice = weights(net, x, y, trusted_x.repeat(2, 1, 1, 1), trusted_y.repeat(2))
    torch.testing.assert_close(weights(net, x, y, trusted_x, trusted_y), twice, rtol=1e-9, atol=1e-12)


def test_weights_are_all_zero_if_no_sample_helps() -> None:
    net = TinyNet(0).train()
    x, _ = batch(0)
    torch.nn.init.zeros_(net.head.weight)
    torch.nn.init.zeros_(net.head.bias)
    lone = weights(net, x[:2], torch.tensor([0, 0]), x[:2], torch.tensor([1, 1]))
    assert lone.tolist() == [0, 0]


def test_the_net_its_statistics_and_the_generator_stay_as_they_are() -> None:
    net = TinyNet(0, dropout=0.5).train()
    before, generator = weights_of(net), torch.get_rng_state()
    weights(net, *batch(0), *batch(1))
    assert same(before, weights_of(net))
    assert torch.equal(torch.get_rng_state(), generator)
    assert all(parameter.grad is None for parameter in net.parameters())


def test_a_step_descends_the_weighted_sum_of_the_losses() -> None:
    """One step, by hand from the views that both sets gave; BatchNorm moves once."""
    s = ReweightSettings(**{**FIELDS, "epochs": 1, "warmup_share": 0.0, "batch_size": 20, "momentum": 0.0})
    data, trusted = TinyData(), TinyData(6, seed=5, noise=0.0)
    sets = TrainingSets(data, trusted)
    state = start(METHOD, s, sets)
    net = TinyNet(10).train()
    net.load_state_dict(copied(state.nets[0].state_dict()))
    (report,) = loop.fit(METHOD, state, sets, s)
    (x,), (index,), (trusted_x,), (trusted_index,) = data.views, data.asked, trusted.views, trusted.asked
    assert (len(index), len(trusted_index)) == (40, 40)
    buffers = copied(dict(net.named_buffers()))
    w = slow_weights(net, x, data.labels[index], trusted_x, trusted.labels[trusted_index])
    net.load_state_dict(buffers, strict=False)
    loss = (w * F.cross_entropy(net(x), data.labels[index], reduction="none")).sum()
    loss.backward()
    assert report.losses["loss"][0] == pytest.approx(loss.item(), rel=1e-5)
    assert report.figures == {}
    for name, parameter in net.named_parameters():
        assert parameter.grad is not None
        expected = parameter - s.lr * (parameter.grad + s.weight_decay * parameter)
        torch.testing.assert_close(dict(state.nets[0].named_parameters())[name], expected)
    for name, buffer in net.named_buffers():
        torch.testing.assert_close(dict(state.nets[0].named_buffers())[name], buffer)


def test_its_warm_up_is_ordinary_training_and_the_stand_in_is_reported_after_it() -> None:
    s, data = ReweightSettings(**FIELDS), TinyData()
    sets = TrainingSets(data)
    state, ordinary = start(METHOD, s, sets), start(cross_entropy.METHOD, s, sets)
    plain = MethodSettings(**{**SHORT, "epochs": 4})
    ours = loop.fit(METHOD, state, sets, s)
    for report, other in zip(ours, loop.fit(cross_entropy.METHOD, ordinary, sets, plain), strict=False):
        assert report.losses == other.losses
        if report.epoch == 2:
            break
    assert "stand_in" not in state.samples
    for report in ours:
        assert (report.phase, report.figures) == ("reweight", {"trusted_stand_in": 1.0})
    assert state.samples["stand_in"].sum() == sum(-(-int(count) // 10) for count in data.labels.bincount())


@pytest.mark.parametrize("trusted", [None, TinyData(9, seed=5, noise=0.0)])
def test_resumed_it_continues_to_the_bit(trusted: TinyData | None) -> None:
    assert_resumes(METHOD, ReweightSettings(**FIELDS), TrainingSets(TinyData(), trusted))


@pytest.mark.parametrize("with_trusted", [False, True])
def test_it_trains_anything(with_trusted: bool) -> None:
    assert_trains_on_odd_data(METHOD, **FIELDS, with_trusted=with_trusted)


def test_it_is_a_method_with_phases_for_any_number_of_epochs() -> None:
    assert METHODS["reweight"] is METHOD
    assert METHOD.double_backward
    assert not METHOD.needs_trusted
    assert_phases_add_up(METHOD)
    assert_published_fit(METHOD, PUBLISHED)


@pytest.mark.parametrize(
    ("epochs", "share", "expected"), [(1, 0.1, 0), (2, 0.1, 1), (5, 0.1, 1), (30, 0.1, 3), (5, 0.0, 0)]
)
def test_a_stand_in_is_not_chosen_by_a_net_that_was_never_trained(epochs: int, share: float, expected: int) -> None:
    """Few epochs have a warm-up, too, unless its share is 0 or there is only one epoch."""
    phases = METHOD.phases(ReweightSettings(epochs=epochs, warmup_share=share))
    assert sum(phase.num_epochs for phase in phases if phase.name == "warmup") == expected
