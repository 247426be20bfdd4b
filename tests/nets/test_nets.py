"""Networks. Oracles: parameter counts from the layers' shapes, a functional re-statement of the block and the net."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dividemix.errors import InputError
from dividemix.methods.dividemix import DivideMixSettings
from dividemix.nets.build import NETS, build_net
from dividemix.nets.inception_resnet_v2 import InceptionResNetV2
from dividemix.nets.linear import Fourier, Linear
from dividemix.nets.mlp import MLP
from dividemix.nets.preact_resnet import PreActBlock, PreActResNet
from dividemix.nets.resnet import ResNet50
from dividemix.nets.small_cnn import SmallCNN
from dividemix.nets.small_vgg import SmallVGG
from dividemix.nets.trees import Trees


def net_of(
    *, num_classes: int = 10, image_shape: tuple[int, ...] = (32, 32, 3), seed: int = 1, **fields: Any
) -> nn.Module:
    return build_net(DivideMixSettings(**fields), num_classes=num_classes, image_shape=image_shape, seed=seed)


def num_parameters(net: nn.Module) -> int:
    return sum(parameter.numel() for parameter in net.parameters())


def preact_resnet18_count(width: int, channels: int, num_classes: int, final_norm: bool) -> int:
    """Convolutions without bias, two numbers a channel for each BatchNorm, a linear layer with bias."""
    count = channels * width * 9 + 2 * width
    num_in = width
    for num_out, strides in ((width, (1, 1)), (2 * width, (2, 1)), (4 * width, (2, 1)), (8 * width, (2, 1))):
        for stride in strides:
            count += 2 * num_in + num_in * num_out * 9 + 2 * num_out + num_out * num_out * 9
            if stride == 2:
                count += num_in * num_out
            num_in = num_out
    return count + 2 * num_in * final_norm + num_in * num_classes + num_classes


def test_preact_resnet18_has_the_papers_size() -> None:
    """1,856 stem + 147,968 + 525,184 + 2,098,944 + 8,392,192 in the stages + 5,130 in the head."""
    assert preact_resnet18_count(64, 3, 10, False) == 11_171_274
    assert num_parameters(net_of()) == 11_171_274


@pytest.mark.parametrize("final_norm", [False, True])
@pytest.mark.parametrize(("width", "channels", "num_classes"), [(4, 1, 2), (16, 3, 100)])
def test_width_channels_classes_and_final_norm_change_the_size(
    width: int, channels: int, num_classes: int, final_norm: bool
) -> None:
    net = net_of(net_width=width, final_norm=final_norm, num_classes=num_classes, image_shape=(16, 16, channels))
    assert num_parameters(net) == preact_resnet18_count(width, channels, num_classes, final_norm)


def shake(net: nn.Module) -> None:
    """BatchNorm as it never is at the start: every weight, bias and statistic another number."""
    generator = torch.Generator().manual_seed(5)
    for tensor in net.state_dict().values():
        if tensor.ndim == 1 and tensor.is_floating_point():
            tensor.copy_(torch.rand(tensor.shape, generator=generator) + 0.5)


def norm_relu(weights: dict[str, Tensor], name: str, h: Tensor, training: bool) -> Tensor:
    mean, variance = weights[f"{name}.running_mean"], weights[f"{name}.running_var"]
    if training:
        mean, variance = h.mean(dim=(0, 2, 3)), h.var(dim=(0, 2, 3), unbiased=False)
    scale = weights[f"{name}.weight"] / torch.sqrt(variance + 1e-5)
    shift = weights[f"{name}.bias"] - mean * scale
    return (h * scale[:, None, None] + shift[:, None, None]).clamp(min=0)


def block_restated(weights: dict[str, Tensor], x: Tensor, stride: int, training: bool) -> Tensor:
    active = norm_relu(weights, "norm1", x, training)
    shortcut = F.conv2d(active, weights["shortcut.weight"], stride=stride) if "shortcut.weight" in weights else active
    h = F.conv2d(active, weights["conv1.weight"], stride=stride, padding=1)
    return F.conv2d(norm_relu(weights, "norm2", h, training), weights["conv2.weight"], padding=1) + shortcut


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize(("num_in", "num_out", "stride"), [(4, 4, 1), (4, 6, 1), (4, 8, 2)])
def test_block_is_its_functional_restatement(num_in: int, num_out: int, stride: int, training: bool) -> None:
    torch.manual_seed(0)
    block = PreActBlock(num_in, num_out, stride).double().train(training)
    shake(block)
    x = torch.randn(3, num_in, 6, 6, dtype=torch.float64)
    weights = {name: tensor.clone() for name, tensor in block.state_dict().items()}
    assert ("shortcut.weight" in weights) == (stride != 1 or num_in != num_out)
    with torch.no_grad():
        torch.testing.assert_close(block(x), block_restated(weights, x, stride, training))


@pytest.mark.parametrize("final_norm", [False, True])
def test_net_is_its_functional_restatement(final_norm: bool) -> None:
    """Stem, eight blocks, BatchNorm and ReLU if asked, mean over the image, linear layer."""
    net = net_of(net_width=3, final_norm=final_norm, num_classes=5).double().eval()
    shake(net)
    weights = net.state_dict()
    x = torch.randn(2, 3, 32, 32, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    h = norm_relu(weights, "stem_norm", F.conv2d(x, weights["stem.weight"], padding=1), training=False)
    for i, stride in enumerate((1, 1, 2, 1, 2, 1, 2, 1)):
        prefix = f"blocks.{i}."
        block = {name.removeprefix(prefix): t for name, t in weights.items() if name.startswith(prefix)}
        h = block_restated(block, h, stride, training=False)
    assert h.shape == (2, 24, 4, 4)
    if final_norm:
        h = norm_relu(weights, "final.0", h, training=False)
    expected = h.mean(dim=(2, 3)) @ weights["head.weight"].T + weights["head.bias"]
    with torch.no_grad():
        torch.testing.assert_close(net(x), expected)


@pytest.mark.parametrize("image_shape", [(28, 28, 1), (32, 32, 3), (8, 8, 1)])
def test_small_cnn_has_three_convolutions_and_a_hidden_layer(image_shape: tuple[int, int, int]) -> None:
    """Convolutions without bias to 16, 32, 64 channels, a hidden layer of 256 on a 3 x 3 map, BatchNorm after each."""
    net = net_of(net="small_cnn", net_width=16, image_shape=image_shape)
    height, width, channels = image_shape
    convolutions = channels * 16 * 9 + 16 * 32 * 9 + 32 * 64 * 9
    linear = (9 * 64 * 256 + 256) + (256 * 10 + 10)
    norms = 2 * (16 + 32 + 64 + 256)
    assert num_parameters(net) == convolutions + linear + norms
    assert net(torch.zeros(2, channels, height, width)).shape == (2, 10)


@pytest.mark.parametrize("image_shape", [(32, 32, 3), (28, 28, 1), (5, 9, 1)])
def test_small_vgg_is_its_functional_restatement(image_shape: tuple[int, int, int]) -> None:
    """A 2 x 2 convolution; three times convolution, pooling while there is something to halve, convolution; maximum."""
    net = net_of(net="small_vgg", net_width=4, num_classes=5, image_shape=image_shape).double().eval()
    shake(net)
    weights = net.state_dict()
    height, width, channels = image_shape
    x = torch.randn(2, channels, height, width, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    h = F.conv2d(x, weights["stem.weight"], weights["stem.bias"]).clamp(min=0)
    assert h.shape == (2, 2, height - 1, width - 1)
    for i in range(3):
        h = F.conv2d(h, weights[f"stages.{i}.conv1.weight"], padding=1)
        h = F.max_pool2d(h, 2) if min(h.shape[2:]) >= 2 else h
        h = norm_relu(weights, f"stages.{i}.norm1", h, training=False)
        h = F.conv2d(h, weights[f"stages.{i}.conv2.weight"], padding=1)
        h = norm_relu(weights, f"stages.{i}.norm2", h, training=False)
        assert h.shape[1] == 4 * 2**i
    expected = h.flatten(2).max(dim=2).values @ weights["head.weight"].T / 9
    with torch.no_grad():
        torch.testing.assert_close(net(x), expected)


def test_nets_by_name() -> None:
    known = {
        "preact_resnet18": PreActResNet,
        "resnet50": ResNet50,
        "inception_resnet_v2": InceptionResNetV2,
        "small_cnn": SmallCNN,
        "small_vgg": SmallVGG,
        "mlp": MLP,
        "linear": Linear,
        "fourier": Fourier,
        "trees": Trees,
    }
    assert known == NETS
    assert type(net_of(net="small_cnn", net_width=2)) is SmallCNN
    assert type(net_of(net="preact_resnet18", net_width=2)) is PreActResNet


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("preact_resnet18", (8, 8, 3)),
        ("resnet50", (8, 8, 3)),
        pytest.param("inception_resnet_v2", (75, 75, 3), marks=pytest.mark.slow),
        ("small_cnn", (8, 8, 3)),
        ("small_vgg", (8, 8, 3)),
        ("mlp", (8,)),
    ],
)
def test_the_seed_alone_decides_the_weights(name: str, shape: tuple[int, ...]) -> None:
    weights = []
    for seed, global_seed in ((1, 5), (1, 6), (2, 5)):
        torch.manual_seed(global_seed)
        before = torch.get_rng_state()
        net = net_of(net=name, net_width=2, image_shape=shape, seed=seed)
        assert torch.equal(torch.get_rng_state(), before)
        weights.append(torch.cat([parameter.flatten() for parameter in net.parameters()]))
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def refused(**fields: Any) -> str:
    """The one line with which the net is refused."""
    with pytest.raises(InputError) as refusal:
        net_of(**fields)
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


def test_an_unknown_net_lists_the_known_ones() -> None:
    line = refused(net="tower")
    assert "'tower'" in line
    assert all(name in line for name in NETS)
    assert "package.module:function" in line


def test_a_net_that_is_nearly_known_is_suggested() -> None:
    assert refused(net="resnet5") == (
        "unknown net 'resnet5': use "
        + ", ".join(NETS)
        + ", timm:NAME, torchvision:NAME, or your own as package.module:function"
    )


def test_images_too_small_for_the_net_are_refused_or_taken() -> None:
    """One pixel is too few for three poolings, and 74 for unpadded strides; a net that pads takes one."""
    assert "1 x 1 x 3 images" in refused(net="small_cnn", image_shape=(1, 1, 3))
    assert "75 x 74 x 3 images" in refused(net="inception_resnet_v2", image_shape=(75, 74, 3))
    for name in ("preact_resnet18", "resnet50"):
        net = net_of(net=name, net_width=2, image_shape=(1, 1, 3))
        assert net(torch.zeros(2, 3, 1, 1)).shape == (2, 10)


# A factory of the user's own.

MODULE = """
from torch import nn

def plain(num_classes):
    return nn.Sequential(nn.Flatten(), nn.LazyLinear(num_classes))

def wide(num_classes, in_channels, width):
    return nn.Sequential(nn.Conv2d(in_channels, width, 1), nn.Flatten(), nn.LazyLinear(num_classes))

def of_vectors(num_classes, in_features, width, in_channels=None):
    assert in_channels is None
    return nn.Sequential(nn.Linear(in_features, width), nn.Linear(width, num_classes))

class Net(nn.Sequential):
    def __init__(self, num_classes, **others):
        assert not others
        super().__init__(nn.Flatten(), nn.LazyLinear(num_classes))

def wrong_shape(num_classes):
    return nn.Sequential(nn.Flatten(), nn.LazyLinear(num_classes + 1))

def raises(num_classes):
    raise RuntimeError("no luck today\\nsecond line")

def silent(num_classes):
    raise KeyError

def not_a_net(num_classes):
    return "net"

def no_tensor(num_classes):
    class Pair(nn.Module):
        def forward(self, x):
            return x, x
    return Pair()

def other_arguments(classes):
    return None

number = 3
"""


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module in the working directory, which is not on the path."""
    (tmp_path / "own_nets_for_test.py").write_text(MODULE)
    (tmp_path / "own_broken_for_test.py").write_text("import nothing_of_that_name\n")
    (tmp_path / "own_package_for_test").mkdir()
    (tmp_path / "own_package_for_test" / "__init__.py").touch()
    (tmp_path / "own_package_for_test" / "nets.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    yield "own_nets_for_test"
    for name in [name for name in sys.modules if name.startswith("own_")]:
        del sys.modules[name]


@pytest.mark.parametrize("function", ["plain", "wide", "Net"])
def test_a_factory_in_the_working_directory(own_module: str, function: str) -> None:
    path = list(sys.path)
    net = net_of(net=f"{own_module}:{function}", net_width=7, num_classes=4, image_shape=(5, 6, 2))
    assert sys.path == path
    assert net(torch.zeros(3, 2, 5, 6)).shape == (3, 4)
    if function == "wide":
        assert net.get_parameter("0.weight").shape == (7, 2, 1, 1)


def test_a_factory_of_vectors_is_told_their_length(own_module: str) -> None:
    net = net_of(net=f"{own_module}:of_vectors", net_width=7, num_classes=4, image_shape=(9,))
    assert net.get_parameter("0.weight").shape == (7, 9)
    assert net(torch.zeros(3, 9)).shape == (3, 4)


def test_a_factory_in_a_package(own_module: str) -> None:
    assert net_of(net="own_package_for_test.nets:plain")(torch.zeros(2, 3, 32, 32)).shape == (2, 10)


@pytest.mark.parametrize(
    ("function", "says"),
    [
        ("wrong_shape", "shape (2, 11), not (2, 10)"),
        ("raises", "RuntimeError: no luck today"),
        ("silent", "KeyError"),
        ("not_a_net", "returned str, not a torch.nn.Module"),
        ("no_tensor", "does not fit 10 classes of 32 x 32 x 3 images"),
        ("other_arguments", "num_classes"),
        ("absent", "absent"),
        ("number", "number"),
    ],
)
def test_a_factory_that_does_not_fit_is_refused_in_one_line(own_module: str, function: str, says: str) -> None:
    path = list(sys.path)
    line = refused(net=f"{own_module}:{function}")
    assert f"{own_module}:{function}" in line
    assert says in line
    assert sys.path == path


@pytest.mark.parametrize(
    "name", ["own_broken_for_test:net", "no_module_of_that_name:net", ":net", "own_nets_for_test:", "builtins:dict"]
)
def test_what_cannot_be_imported_or_called_is_refused_in_one_line(own_module: str, name: str) -> None:
    assert name in refused(net=name)


@pytest.mark.slow
def test_narrow_nets_survive_a_backward_in_channels_last() -> None:
    """A strided 1 x 1 convolution of a few channels corrupted the heap here: in a process of its own, which lives."""
    script = """
import torch
from dividemix.nets.preact_resnet import PreActResNet
for width in (1, 2, 4):
    net = PreActResNet(3, 3, width, False).to(memory_format=torch.channels_last)
    for _ in range(3):
        images = torch.randn(16, 3, 16, 16).to(memory_format=torch.channels_last)
        net(images).sum().backward()
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
