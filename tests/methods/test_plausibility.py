"""Plausibility against a loop over samples, and the cases that its formula makes special."""

import math

import oracles
import pytest
import torch
from torch import Tensor

from dividemix.methods.evaluation import strongest_rivals
from dividemix.methods.plausibility import plausibility


def _plausible(probs: Tensor, labels: Tensor) -> Tensor:
    """Of one net."""
    rivals = strongest_rivals(probs, labels)
    losses, rival_losses = (-probs.gather(1, each[:, None]).T.log() for each in (labels, rivals))
    return plausibility(losses, rivals[None], rival_losses, labels)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("num_classes", [2, 3, 7])
def test_plausibility_is_the_labels_share_against_its_strongest_rival(seed: int, num_classes: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    probs = torch.randn(40, num_classes, generator=generator, dtype=torch.float64).mul(2).softmax(dim=1)
    labels = torch.randint(num_classes, (40,), generator=generator)
    found = _plausible(probs, labels)
    assert found.tolist() == pytest.approx(oracles.plausibility(probs.tolist(), labels.tolist()), rel=1e-9)


def test_nets_judge_each_for_itself_and_their_mean_counts() -> None:
    generator = torch.Generator().manual_seed(0)
    probs = torch.randn(2, 30, 3, generator=generator, dtype=torch.float64).softmax(dim=2)
    labels = torch.randint(3, (30,), generator=generator)
    rivals = strongest_rivals(probs, labels)
    losses, rival_losses = (
        -probs.gather(2, each[..., None]).squeeze(2).log() for each in (labels.expand(2, 30), rivals)
    )
    first, second = (oracles.plausibility(net_probs, labels.tolist()) for net_probs in probs.tolist())
    expected = [(a + b) / 2 for a, b in zip(first, second, strict=True)]
    assert plausibility(losses, rivals, rival_losses, labels).tolist() == pytest.approx(expected, rel=1e-9)


def test_a_label_of_a_class_that_is_never_sure_is_not_outdone_by_one_that_always_is() -> None:
    """Every shirt (1) gets 0.4, every coat (0) 0.9: each is as plausible as a typical sample of its class is."""
    probs = torch.tensor([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4], [0.6, 0.4]], dtype=torch.float64)
    labels = torch.tensor([0, 0, 1, 1])
    coat, _, shirt, _ = _plausible(probs, labels).tolist()
    assert coat == pytest.approx((0.9 / 0.9) / (0.9 / 0.9 + 0.1 / 0.4))
    assert shirt == pytest.approx((0.4 / 0.4) / (0.4 / 0.4 + 0.6 / 0.9))
    assert shirt > 0.5


def test_plausibility_does_not_depend_on_the_names_of_classes_or_the_order_of_samples() -> None:
    generator = torch.Generator().manual_seed(0)
    probs = torch.randn(30, 4, generator=generator, dtype=torch.float64).softmax(dim=1)
    labels = torch.randint(4, (30,), generator=generator)
    found = _plausible(probs, labels)
    names, order = torch.tensor([2, 0, 3, 1]), torch.randperm(30, generator=generator)
    torch.testing.assert_close(_plausible(probs[:, names.argsort()], names[labels]), found)
    torch.testing.assert_close(_plausible(probs[order], labels[order]), found[order])


def test_a_class_without_samples_counts_with_its_bare_probability() -> None:
    probs = torch.tensor([[0.5, 0.2, 0.3], [0.4, 0.5, 0.1]], dtype=torch.float64)
    found = _plausible(probs, torch.tensor([0, 1])).tolist()
    assert found == pytest.approx(oracles.plausibility(probs.tolist(), [0, 1]), rel=1e-9)
    assert found[0] == pytest.approx(1 / (1 + 0.3))  # the rival is class 2, which nobody is labelled with


def test_the_only_sample_of_a_class_is_as_plausible_as_can_be_whatever_its_loss() -> None:
    """Its probability is its class's mean: 1 against the rival's. Also where the probability itself is too small."""
    for loss in (0.1, 7.0, 1e4):
        found = plausibility(
            torch.tensor([[loss, 0.5]]), torch.tensor([[1, 0]]), torch.tensor([[0.5, 9.0]]), torch.tensor([0, 1])
        )
        assert found[0].item() == pytest.approx(0.5)


def test_plausibility_is_right_where_every_probability_of_a_class_is_zero() -> None:
    """exp(-10000) is 0 in float64; relative to each other, the samples are a factor e apart all the same."""
    losses, rival_losses = torch.tensor([[10000.0, 10001.0, 0.7]]), torch.tensor([[0.7, 0.7, 3.0]])
    found = plausibility(losses, torch.tensor([[1, 1, 0]]), rival_losses, torch.tensor([0, 0, 1]))
    mean = (1 + math.exp(-1)) / 2
    assert found[:2].tolist() == pytest.approx([1 / (1 + mean), math.exp(-1) / (math.exp(-1) + mean)], rel=1e-6)
