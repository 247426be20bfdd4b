"""The layer of the logits. Oracles: the net's own layers, one after the other; a linear layer with one more row."""

import pytest
import torch
from tiny import TinyData, TinyNet, tiny_nets, weights_of
from tiny_transformer import TinyTexts, tiny_token_net
from torch import nn

from dividemix.engine.acceleration import autocast_net
from dividemix.errors import InputError
from dividemix.methods.last_layer import add_output, features, features_of_all, head_input, head_logits, last_linear
from dividemix.methods.method import MethodSettings
from dividemix.nets.build import NETS, build_net


@pytest.mark.parametrize("name", [name for name in NETS if name != "trees"])  # which have no layers
def test_in_every_net_of_the_package_the_last_linear_layer_gives_the_logits(name: str) -> None:
    side = 80 if name == "inception_resnet_v2" else 32
    shape = (4,) if name in ("mlp", "linear", "fourier") else (side, side, 3)
    net = build_net(MethodSettings(net=name, net_width=2), num_classes=5, image_shape=shape, seed=0).eval()
    given: list[torch.Tensor] = []
    last_linear(net).register_forward_hook(lambda module, args, out: given.append(out))
    x = torch.randn(2, 4) if len(shape) == 1 else torch.randn(2, 3, *shape[:2])
    with torch.no_grad():
        logits = net(x)
    assert torch.equal(logits, given[0])
    assert last_linear(net).out_features == 5


def test_a_net_without_a_linear_layer_is_refused() -> None:
    with pytest.raises(InputError, match=r"^the net Conv2d has no nn\.Linear"):
        last_linear(nn.Conv2d(1, 1, 1))


def test_one_more_output_is_one_more_row_and_only_in_training_mode() -> None:
    net, plain = TinyNet(0), tiny_nets(num_nets=1)[0]
    plain.load_state_dict(net.state_dict())
    before = weights_of(net)
    weight, bias = torch.randn(1, 8, dtype=torch.float64), torch.randn(1, dtype=torch.float64)
    wide = nn.Linear(8, 4, dtype=torch.float64)
    with torch.no_grad():
        wide.weight.copy_(torch.cat([net.head.weight, weight]))
        wide.bias.copy_(torch.cat([net.head.bias, bias]))
    add_output(net.head, weight, bias)
    features = torch.randn(5, 8, dtype=torch.float64)
    torch.testing.assert_close(net.head(features), wide(features))
    images = torch.randn(5, 6, dtype=torch.float64)
    assert net.train()(images).shape == (5, 4)
    plain.train()(images)  # moves the BatchNorm statistics alike
    assert torch.equal(net.eval()(images), plain.eval()(images))
    assert net.state_dict().keys() == before.keys()
    assert all(net.state_dict()[name].shape == tensor.shape for name, tensor in before.items())


def test_the_features_are_the_input_of_the_layer_for_every_sample() -> None:
    net, data = TinyNet(0), TinyData(1025)
    found = features_of_all(net, data)
    with torch.no_grad():
        expected = torch.tanh(net.eval().norm(net.body(data.images.flatten(1))))
    assert torch.equal(found, expected.half())
    torch.testing.assert_close(features(net, data.images), expected)
    assert not net.head._forward_pre_hooks


def test_body_and_head_one_after_the_other_are_the_net() -> None:
    net, x = tiny_token_net(dropout=0.0), TinyTexts().tokens
    sentences = head_input(net, x)
    assert torch.equal(head_logits(net, sentences), net(x))
    head_logits(net, sentences).sum().backward()
    in_two = {name: parameter.grad.clone() for name, parameter in net.named_parameters() if parameter.grad is not None}
    net.zero_grad()
    net(x).sum().backward()
    for name, parameter in net.named_parameters():
        torch.testing.assert_close(in_two[name], parameter.grad)


def test_a_failed_forward_leaves_the_head_as_it_was() -> None:
    net = tiny_token_net(dropout=0.0)
    with pytest.raises(IndexError):
        head_input(net, torch.full((2, 3), 1000.0))
    assert net(TinyTexts().tokens).shape == (40, 3)


def test_body_and_head_compute_in_the_type_of_the_net() -> None:
    """The oracle is the net as a whole, in bfloat16; float32 differs."""
    net, x = tiny_token_net(dropout=0.0).float(), TinyTexts().tokens
    plain = net(x)
    autocast_net(net, torch.device("cpu"), torch.bfloat16)
    logits = head_logits(net, head_input(net, x))
    assert logits.dtype == torch.float32
    torch.testing.assert_close(logits, net(x), atol=1e-2, rtol=0)
    assert not torch.allclose(logits, plain, atol=1e-6)
