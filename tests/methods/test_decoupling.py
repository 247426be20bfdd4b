"""Decoupling. Oracles: ordinary training while all samples count, gradients by hand, and a plain loop."""

import itertools
from typing import Any

import method_checks
import pytest
import torch
from tiny import TinyData, copied, fit, same, start, tiny_nets
from torch.nn import functional as F
from torch.optim import SGD

from dividemix.methods.decoupling import METHOD, DecouplingSettings, disagreement_losses

FIELDS: dict[str, Any] = {"epochs": 6, "batch_size": 4, "lr": 0.05, "lr_drop_epoch": 5}


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_it_is_a_plain_loop_that_skips_agreement_after_warm_up(share: float) -> None:
    """With a share of 1 it is ordinary training of both nets."""
    s, data = DecouplingSettings(**FIELDS, warmup_share=share), TinyData()
    state = start(METHOD, s, data)
    reports = list(fit(METHOD, state, data, s))
    nets = [net.train() for net in tiny_nets()]
    optimizers = [SGD(net.parameters(), lr=s.lr, momentum=s.momentum, weight_decay=s.weight_decay) for net in nets]
    asked = zip(data.asked, data.views, strict=True)
    for epoch in range(6):
        num_disagreed = 0
        for index, views in itertools.islice(asked, 5):
            labels = data.labels[index]
            logits = [net(views) for net in nets]
            differs = [i for i in range(8) if logits[0][i].argmax() != logits[1][i].argmax()]
            num_disagreed += len(differs)
            used = [*range(8)] if epoch < 6 * share else differs
            for sgd, own in zip(optimizers, logits, strict=True):
                if used:
                    sgd.param_groups[0]["lr"] = s.learning_rate(epoch)
                    sgd.zero_grad()
                    total = torch.stack([F.cross_entropy(own[i : i + 1], labels[i : i + 1]) for i in used]).sum()
                    (total / max(0.8, len(used))).backward()
                    sgd.step()
        assert reports[epoch].figures["disagreement"] == pytest.approx(num_disagreed / 40)
    for net, expected in zip(state.nets, nets, strict=True):
        for name, tensor in net.state_dict().items():
            torch.testing.assert_close(tensor, expected.state_dict()[name])


def test_nets_that_are_the_same_never_move() -> None:
    s, data = DecouplingSettings(**FIELDS, warmup_share=0.0), TinyData()
    state = start(METHOD, s, data, nets=[tiny_nets(num_nets=1)[0] for _ in range(2)])
    before = [copied(dict(net.named_parameters())) for net in state.nets]
    for report in fit(METHOD, state, data, s):
        assert report.losses["loss"] == [0, 0]
    assert all(same(old, dict(net.named_parameters())) for old, net in zip(before, state.nets, strict=True))


def test_labels_of_samples_that_the_nets_agree_about_do_not_count() -> None:
    logits = [torch.randn(20, 3, generator=torch.Generator().manual_seed(k)) for k in range(2)]
    differs = logits[0].argmax(dim=1) != logits[1].argmax(dim=1)
    labels = torch.arange(20) % 3
    others = torch.where(differs, labels, (labels + 1) % 3)
    for a, b in zip(
        disagreement_losses(logits, labels, differs), disagreement_losses(logits, others, differs), strict=True
    ):
        assert a is not None
        assert b is not None
        assert torch.equal(a, b)


def test_one_sample_of_many_moves_a_net_by_its_gradient_over_a_tenth_of_the_batch() -> None:
    logits = [torch.randn(50, 3, generator=torch.Generator().manual_seed(k)).requires_grad_() for k in range(2)]
    labels, used = torch.arange(50) % 3, torch.arange(50) == 7
    for own, loss in zip(logits, disagreement_losses(logits, labels, used), strict=True):
        assert loss is not None
        (gradient,) = torch.autograd.grad(loss, own)
        expected = torch.softmax(own[7].detach(), dim=0) - F.one_hot(labels[7], 3)
        torch.testing.assert_close(gradient[7], expected / 5)
        assert (gradient[~used] == 0).all()


def test_without_samples_there_is_no_loss() -> None:
    assert disagreement_losses([torch.zeros(4, 3)] * 2, torch.zeros(4).long(), torch.zeros(4).bool()) == [None, None]


def test_its_phases_add_up_and_warm_up_scales() -> None:
    method_checks.assert_phases_add_up(METHOD)
    assert [DecouplingSettings(epochs=epochs).num_warmup for epochs in (1, 4, 10, 300)] == [1, 1, 1, 30]
    assert DecouplingSettings(warmup_share=0.0).num_warmup == 0
    assert METHOD.num_nets(DecouplingSettings()) == 2


def test_resumed_it_continues_to_the_bit() -> None:
    method_checks.assert_resumes(METHOD, DecouplingSettings(**FIELDS, warmup_share=0.5))


def test_it_trains_on_odd_data() -> None:
    method_checks.assert_trains_on_odd_data(METHOD, **FIELDS)
