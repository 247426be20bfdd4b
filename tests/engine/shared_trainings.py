"""Tiny trainings by every method, for the tests that compare one process with several."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from method_checks import SHORT
from tiny import NUM_CLASSES, TinyData, tiny_nets
from tiny_transformer import TinyTexts, tiny_token_net
from torch import Tensor, nn

from dividemix.engine.processes import together
from dividemix.engine.shared_net import share_net
from dividemix.engine.state import State
from dividemix.methods import METHODS, find_method, loop
from dividemix.methods.method import TrainingSets
from dividemix.methods.selfmix import METHOD, SelfMixSettings
from dividemix.settings import fields_of


class SingleData(TinyData):
    """The same in float32."""

    def augmented(self, batches: Iterable[Tensor], generator: torch.Generator) -> Iterator[Tensor]:
        """Each row with noise of its own."""
        return (views.float() for views in super().augmented(batches, generator))

    def plain(self, batches: Iterable[Tensor]) -> Iterator[Tensor]:
        """The images as they are."""
        return (images.float() for images in super().plain(batches))


def train_every_method(precision: str = "double") -> dict[str, Any]:
    """For each method its losses and figures of every epoch, its weights' sum at the end, and its judgement."""
    with together():
        results = {name: train(name, precision) for name, method in METHODS.items() if not method.needs_vectors}
        results["mlnt, second order"] = train("mlnt", precision, second_order=True)
        return results


def fine_tune(dropout: str = "0.0") -> dict[str, list[float]]:
    """The weights that a short fine-tuning of a tiny transformer leaves."""
    net, sets = tiny_token_net(dropout=float(dropout)), TrainingSets(TinyTexts())
    s = SelfMixSettings(epochs=3, warmup_epochs=1, batch_size=6, lr=0.01, lr_drop_epoch=3)
    with together():
        share_net(net, sync_batchnorm=False)
        state = State.start([net], s)
        loop.start(METHOD, state, sets, s)
        list(loop.fit(METHOD, state, sets, s))
    return {name: tensor.flatten().tolist() for name, tensor in net.state_dict().items()}


def step_with_own_statistics() -> dict[str, list[float]]:
    """What a step leaves, with BatchNorm over the rows of each process."""
    net = batchnorm_net()
    with together():
        share_net(net, sync_batchnorm=False)
        return after_step(net, net)


def step_with_common_statistics() -> dict[str, list[float]]:
    """What a step leaves, with BatchNorm over the rows of all processes."""
    net = batchnorm_net()
    with together():
        share_net(net, sync_batchnorm=True)
        return after_step(net, net)


def step_with_weights_made_of_others() -> dict[str, list[float]]:
    """What a step leaves of a net whose layers make their weights in every forward."""
    net = weight_norm_net()
    with together():
        share_net(net, sync_batchnorm=True)
        return after_step(net, net)


def weight_norm_net() -> nn.Module:
    """The net with BatchNorm, and weight normalisation of both kinds that torch has."""
    net = batchnorm_net()
    assert isinstance(net, nn.Sequential)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the older one is deprecated
        nn.utils.weight_norm(net[0])
    nn.utils.parametrizations.weight_norm(net[4])
    return net


def batchnorm_net() -> nn.Module:
    """A small net with BatchNorm, in double precision."""
    torch.manual_seed(3)
    layers = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 5), nn.BatchNorm1d(5)
    return nn.Sequential(*layers).double().train()


def after_step(net: nn.Module, forward: Callable[[Tensor], Tensor]) -> dict[str, list[float]]:
    """Gradients and running statistics of the net after two forwards and one backward."""
    x = torch.randn(41, 3, 6, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    (forward(x).square().sin().mean() + (forward(x.flip(0)) * x[:, 0, 0, :5]).mean()).backward()
    buffers = {name: buffer for name, buffer in net.named_buffers() if buffer.is_floating_point()}
    gradients = {name: value.grad for name, value in net.named_parameters() if value.grad is not None}
    return {name: tensor.flatten().tolist() for name, tensor in (buffers | gradients).items()}


def single_nets(num_nets: int) -> list[nn.Module]:
    """Small nets of the layers that compute in blocks, in float32."""
    nets = list[nn.Module]()
    for k in range(num_nets):
        torch.manual_seed(10 + k)
        layers = nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(24, 8)
        nets.append(nn.Sequential(*layers, nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, NUM_CLASSES)))
    return nets


def train(name: str, precision: str, **changes: Any) -> dict[str, Any]:
    """What a short training of tiny nets reports, with work shared if there are several processes."""
    method = find_method(name)
    known = {"warmup_epochs": 1} if "warmup_epochs" in fields_of(method.settings) else {}
    s = method.settings(**{**SHORT, "epochs": 3, **known, **changes})
    data, make_nets = (TinyData, tiny_nets) if precision == "double" else (SingleData, single_nets)
    sets = TrainingSets(data(41), data(9, seed=1, noise=0.0))
    nets = make_nets(num_nets=method.num_nets(s))
    for net in nets:
        share_net(net, sync_batchnorm=True)
    state = State.start(nets, s)
    loop.start(method, state, sets, s)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reports = [[dict(report.losses), dict(report.figures)] for report in loop.fit(method, state, sets, s)]
        judged = method.judge(state, sets.train, s)
    tensors = {key: tensor.double() for key, tensor in state.tensors().items() if not key.startswith("generators.")}
    return {
        "reports": reports,
        "sums": {key: tensor[tensor.isfinite()].sum().item() for key, tensor in tensors.items()},
        "clean_prob": judged.clean_prob.double().tolist(),
        "draws": torch.randint(2**40, (), generator=state.draws).item(),
    }
