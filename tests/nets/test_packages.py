"""Nets of timm and torchvision, by stand-ins of their interface: the oracle is the net that the package made."""

import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from toys import SETTINGS, save_toy, trained

from dividemix import DivideMixClassifier
from dividemix.errors import InputError
from dividemix.model.model import Model
from dividemix.nets.build import build_net
from dividemix.nets.settings import NetSettings
from dividemix.planning.job import Job
from dividemix.runs.run import Run

PRETRAINED = torch.randn(4, 1, 3, 3, generator=torch.Generator().manual_seed(7))


def net_of(in_channels: int, num_classes: int, pretrained: bool) -> nn.Module:
    """A convolution, the mean, and a head; pretrained, the convolution has known weights."""
    net = nn.Sequential(
        nn.Conv2d(in_channels, 4, 3, bias=False), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, num_classes)
    )
    if pretrained:
        with torch.no_grad():
            net.get_parameter("0.weight").copy_(PRETRAINED.expand(-1, in_channels, -1, -1))
    return net


@pytest.fixture(autouse=True)
def packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand-ins for both packages, with one model."""

    def create_model(name: str, in_chans: int, pretrained: bool = False, num_classes: int = 1000) -> nn.Module:
        if name != "tiny":
            raise RuntimeError(f"Unknown model ({name})")
        return net_of(in_chans, num_classes, pretrained)

    def get_model(name: str, weights: str | None = None, num_classes: int = 1000) -> nn.Module:
        return create_model(name, 3, weights == "DEFAULT", num_classes)

    for name, members in (("timm", {"create_model": create_model}), ("torchvision", {})):
        package: Any = types.ModuleType(name)
        package.__dict__.update(members)
        package.models = types.SimpleNamespace(get_model=get_model)
        monkeypatch.setitem(sys.modules, name, package)


def job(folder: Path, **changes: Any) -> Job:
    values = SETTINGS | {"net": "timm:tiny", "method": "cross_entropy", "data": str(save_toy(folder))} | changes
    values.pop("warmup_epochs")
    return Job.of(values)


@pytest.mark.parametrize("name", ["timm:tiny", "torchvision:tiny"])
def test_a_net_of_a_package_is_built_with_weights_of_the_seed(name: str) -> None:
    nets = [build_net(NetSettings(net=name), num_classes=5, image_shape=(8, 8, 3), seed=seed) for seed in (1, 1, 2)]
    weights = [net.get_parameter("0.weight") for net in nets]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    assert nets[0](torch.zeros(2, 3, 8, 8)).shape == (2, 5)
    assert NetSettings(net=name).net_words == name


def test_pretrained_weights_are_taken_and_the_head_is_new(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", job(tmp_path, pretrained=True))
    assert torch.equal(run.state.nets[0].get_parameter("0.weight"), PRETRAINED)
    assert run.weights is not None
    assert run.weights.head_replaced


def test_the_head_is_trained_alone_first(tmp_path: Path) -> None:
    one = trained(tmp_path / "one", job(tmp_path, pretrained=True, head_epochs=1, epochs=3), 1)
    (net,) = one.state.nets
    assert torch.equal(net.get_parameter("0.weight"), PRETRAINED)
    before = net.get_parameter("3.weight").clone()
    rest = Run.load(tmp_path / "one")
    rest.train()
    (net,) = rest.state.nets
    assert not torch.equal(net.get_parameter("0.weight"), PRETRAINED)
    assert not torch.equal(net.get_parameter("3.weight"), before)
    whole = trained(tmp_path / "whole", job(tmp_path, pretrained=True, head_epochs=1, epochs=3))
    for name, tensor in whole.state.nets[0].state_dict().items():
        assert torch.equal(tensor, net.state_dict()[name])


def test_a_model_of_it_is_loaded_without_the_pretrained_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = trained(tmp_path / "run", job(tmp_path, pretrained=True))
    images = next(run.material.everything.pixels(index) for index in [run.material.train_index[:3]])
    expected = run.predict_proba(images)
    monkeypatch.setattr(sys.modules["timm"], "create_model", lambda *a, **k: net_of(k["in_chans"], 4, False))
    assert abs(Model.from_pretrained(tmp_path / "run").predict_proba(images) - expected).max() < 1e-6


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"net": "timm:other"}, r"'timm:other' cannot be loaded: Unknown model \(other\); check the name"),
        ({"net": "small_cnn", "pretrained": True}, "pretrained is true, but net is 'small_cnn': use timm:NAME"),
        ({"pretrained": True, "weights": "w.pth"}, "pretrained and weights are both given"),
        ({"net": "torchvision:tiny"}, "takes colour images, these are grey: use timm:tiny"),
        ({"net": "keras:tiny"}, "net 'keras:tiny' cannot be imported"),
        ({"net": "tiny"}, "unknown net 'tiny': use .*, timm:NAME, torchvision:NAME"),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        Run.create(tmp_path / "run", job(tmp_path, **changes))
    assert "\n" not in str(caught.value)


def test_a_missing_package_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(InputError, match=r"'timm:tiny' needs timm .*: pip install timm"):
        build_net(NetSettings(net="timm:tiny"), num_classes=5, image_shape=(8, 8, 3), seed=1)


def test_a_model_of_a_hub_is_refused() -> None:
    """A run of somebody else may name it, and its configuration could make timm unpickle its weights."""
    with pytest.raises(InputError, match="only models that timm itself lists can be named"):
        build_net(NetSettings(net="timm:hf-hub:somebody/else"), num_classes=2, image_shape=(8, 8, 3), seed=0)


@pytest.mark.parametrize("name", ["timm:tiny", "torchvision:tiny"])
def test_the_estimator_takes_a_net_of_a_package_by_name(name: str) -> None:
    """Oracle: images whose colour is their class."""
    labels = np.arange(60) % 2
    images = np.zeros((60, 8, 8, 3), np.uint8)
    images[np.arange(60), :, :, labels] = 200
    found = DivideMixClassifier(net=name, method="cross_entropy", epochs=8, lr=0.1).fit(images, labels)
    assert type(found.nets_[0]) is type(net_of(3, 2, False))
    assert found.score(images, labels) == 1.0
