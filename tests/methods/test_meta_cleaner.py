"""Meta-Cleaner. Oracles: the equations as loops, a step by hand, and the identities that the description implies."""

from typing import Any

import pytest
import torch
from method_checks import SHORT, assert_phases_add_up, assert_published_fit, assert_resumes, assert_trains_on_odd_data
from method_checks import started as start
from tiny import TinyData, TinyNet
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import SGD

from dividemix.engine.state import State
from dividemix.errors import InputError
from dividemix.methods import METHODS, loop
from dividemix.methods.meta_cleaner import (
    METHOD,
    PUBLISHED,
    MetaCleanerSettings,
    cleaned,
    group_weights,
    grouped_batches,
    small_net,
)
from dividemix.methods.method import TrainingSets

FIELDS: dict[str, Any] = {**SHORT, "epochs": 4, "batch_size": 8, "group_size": 3}


def scene(seed: int = 0) -> tuple[Tensor, list[Tensor]]:
    """Features of 4 groups of 3 images, and a small net."""
    generator = torch.Generator().manual_seed(seed)
    shapes = (256, 3 * 8), (256,), (3, 256), (3,)
    layers = [0.3 * torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]
    return torch.randn(4, 3, 8, generator=generator, dtype=torch.float64), layers


def test_a_group_becomes_the_mean_that_its_weights_say() -> None:
    features, layers = scene()
    mlp = nn.Sequential(nn.Linear(24, 256), nn.ReLU(), nn.Linear(256, 3)).double()
    mlp.load_state_dict(dict(zip(("0.weight", "0.bias", "2.weight", "2.bias"), layers, strict=True)))
    with torch.no_grad():
        for group, found in zip(features, cleaned(features, layers), strict=True):
            scores = mlp(torch.cat([group[0], group[1], group[2]])).exp()
            expected = sum(score / scores.sum() * v for score, v in zip(scores, group, strict=True))
            assert isinstance(expected, Tensor)
            torch.testing.assert_close(found, expected)


def test_the_weights_of_a_group_have_the_sum_1() -> None:
    torch.testing.assert_close(group_weights(*scene()).sum(dim=1), torch.ones(4, dtype=torch.float64))


def test_a_last_layer_of_zeros_gives_the_plain_mean() -> None:
    features, layers = scene()
    layers[2:] = [torch.zeros_like(layer) for layer in layers[2:]]
    torch.testing.assert_close(cleaned(features, layers), features.mean(dim=1))


def test_among_equal_images_the_weights_do_not_matter() -> None:
    features, layers = scene()
    features = features[:, :1].expand(-1, 3, -1)
    torch.testing.assert_close(cleaned(features, layers), features[:, 0])


# Batches.


def test_every_group_has_one_class_and_classes_come_equally_often() -> None:
    s, data = MetaCleanerSettings(**FIELDS), TinyData()
    batches = grouped_batches(data, s, torch.Generator().manual_seed(0))
    assert batches.shape == (3, 15)  # 5 groups of 3 in a step of at most 16; 3 x 15 >= 40
    groups = data.labels[batches].view(-1, 3)
    assert (groups == groups[:, :1]).all()
    assert groups[:, 0].bincount().tolist() == [5, 5, 5]


def test_a_class_goes_through_all_its_samples_before_one_comes_again() -> None:
    s, data = MetaCleanerSettings(**FIELDS), TinyData(9, noise=0.0)
    batches = grouped_batches(data, s, torch.Generator().manual_seed(0))
    for row in batches.view(-1, 3).tolist():
        assert len(set(row)) == 3  # each class has three


# Training.


def layers_of(state: State) -> list[Tensor]:
    return small_net(state)


@pytest.mark.parametrize("group_size", [1, 3])
def test_a_step_is_that_of_the_whole_trained_end_to_end(group_size: int) -> None:
    """By torch's own layers, from the views that the data gave; one image in a group is cross-entropy."""
    s = MetaCleanerSettings(**{**FIELDS, "epochs": 3, "group_size": group_size})
    data = TinyData()
    sets = TrainingSets(data)
    state = start(METHOD, s, sets)
    K = group_size
    mlp = nn.Sequential(nn.Linear(8 * K, 256), nn.ReLU(), nn.Linear(256, K)).double()
    names = ("0.weight", "0.bias", "2.weight", "2.bias")
    mlp.load_state_dict(dict(zip(names, (layer.detach() for layer in layers_of(state)), strict=True)))
    reports = list(loop.fit(METHOD, state, sets, s))
    net = TinyNet(10).train()
    sgd = SGD([*net.parameters(), *mlp.parameters()], s.lr, momentum=s.momentum, weight_decay=s.weight_decay)
    losses = []
    for index, x in zip(data.asked, data.views, strict=True):
        v = torch.tanh(net.norm(net.body(x.flatten(1)))).view(-1, K, 8)
        a = F.softmax(mlp(v.flatten(1)), dim=1)
        v = v[:, 0] if K == 1 else torch.einsum("nk,nkd->nd", a, v)
        loss = F.cross_entropy(net.head(v), data.labels[index].view(-1, K)[:, 0])
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        losses.append(loss.item())
    per_epoch = len(losses) // 3
    means = [sum(losses[i : i + per_epoch]) / per_epoch for i in range(0, len(losses), per_epoch)]
    assert [report.losses["loss"][0] for report in reports] == pytest.approx(means, rel=1e-5)
    for name, parameter in net.named_parameters():
        torch.testing.assert_close(dict(state.nets[0].named_parameters())[name], parameter)
    if K > 1:
        for layer, parameter in zip(layers_of(state), mlp.parameters(), strict=True):
            torch.testing.assert_close(layer, parameter)
        assert layers_of(state)[2].abs().max() > 0


def test_prediction_knows_nothing_of_the_small_net() -> None:
    s, data = MetaCleanerSettings(**FIELDS), TinyData()
    sets = TrainingSets(data)
    state = start(METHOD, s, sets)
    list(loop.fit(METHOD, state, sets, s))
    other = TinyNet(0).eval()
    other.load_state_dict(state.nets[0].state_dict())
    judged = METHOD.judge(state, data, s)
    torch.testing.assert_close(judged.pred_probs, F.softmax(other(data.images), dim=1).float())


def test_a_net_without_a_classifier_is_refused() -> None:
    s, data = MetaCleanerSettings(**FIELDS), TinyData()
    net = nn.Sequential(nn.Conv2d(1, 3, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    with pytest.raises(InputError, match=r"has no nn\.Linear"):
        loop.start(METHOD, State.start([net], s), TrainingSets(data), s)


def test_resumed_it_continues_to_the_bit() -> None:
    assert_resumes(METHOD, MetaCleanerSettings(**FIELDS), TrainingSets(TinyData()))


@pytest.mark.parametrize("group_size", [1, 3, 50])
def test_it_trains_anything(group_size: int) -> None:
    assert_trains_on_odd_data(METHOD, **{**FIELDS, "group_size": group_size})


def test_a_group_that_no_memory_holds_is_refused() -> None:
    """The laboratory found it: a traceback of torch."""
    with pytest.raises(InputError, match="group_size is 1025: it must be an integer >= 1 and <= 1024"):
        MetaCleanerSettings(**FIELDS | {"group_size": 1025})


def test_it_is_a_method_with_phases_for_any_number_of_epochs() -> None:
    assert METHODS["meta_cleaner"] is METHOD
    assert_phases_add_up(METHOD)
    assert_published_fit(METHOD, PUBLISHED)
