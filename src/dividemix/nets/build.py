"""Networks by name, or from your own factory, named as package.module:function."""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from dividemix.errors import InputError
from dividemix.foreign import import_foreign, is_foreign
from dividemix.nets.inception_resnet_v2 import InceptionResNetV2
from dividemix.nets.linear import Fourier, Linear
from dividemix.nets.mlp import MLP
from dividemix.nets.packages import is_packaged, packaged_factory
from dividemix.nets.preact_resnet import PreActResNet
from dividemix.nets.resnet import ResNet50
from dividemix.nets.settings import NetSettings
from dividemix.nets.small_cnn import SmallCNN
from dividemix.nets.small_vgg import SmallVGG
from dividemix.nets.token_net import is_token_net, token_factory
from dividemix.nets.trees import Trees


def build_net(s: NetSettings, *, num_classes: int, image_shape: tuple[int, ...], seed: int) -> nn.Module:
    """The net of the settings, with weights drawn from seed, for images of (H, W, channels) or vectors of (D,).

    A factory is called with num_classes=. It also gets those of width=, final_norm=, and in_channels= (for images) or
    in_features= (for vectors) that its signature names. Raises InputError if there is no such net, or it does not give
    one logit per class for these samples.
    """
    factory = find_factory(s.net)
    offered: dict[str, Any] = {"width": s.net_width, "final_norm": s.final_norm}
    if len(image_shape) == 1:
        offered["in_features"], other = image_shape[0], "in_channels"
        samples, words = torch.zeros(2, *image_shape), f"vectors of {image_shape[0]} features"
    else:
        height, width, channels = image_shape
        offered["in_channels"], other = channels, "in_features"
        samples, words = torch.zeros(2, channels, height, width), f"{height} x {width} x {channels} images"
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            parameters = inspect.signature(factory).parameters
            if other in parameters and parameters[other].default is inspect.Parameter.empty:
                raise InputError(
                    f"net {s.net!r} takes {_TAKES[other]}, but the samples are {words}: choose another net"
                )
            named = offered.keys() & parameters
            net = factory(num_classes=num_classes, **{name: offered[name] for name in named})
            if not isinstance(net, nn.Module):
                raise TypeError(f"the factory returned {type(net).__name__}, not a torch.nn.Module")
            with torch.no_grad():
                logits = net.eval()(samples)
            if tuple(logits.shape) != (2, num_classes):
                raise TypeError(f"logits of two samples have shape {tuple(logits.shape)}, not (2, {num_classes})")
        except InputError:
            raise
        except Exception as error:  # a foreign factory may raise anything
            first_line = (str(error).splitlines() or [""])[0]
            raise InputError(
                f"net {s.net!r} does not fit {num_classes} classes of {words}: {type(error).__name__}: {first_line}"
            ) from error
    return net


_TAKES = {"in_features": "vectors", "in_channels": "images"}


def find_factory(name: str) -> Callable[..., nn.Module]:
    """The factory of the net of that name. Raises InputError if there is none."""
    if name in NETS:
        return NETS[name]
    if is_packaged(name):
        return packaged_factory(name)
    if is_token_net(name):
        return token_factory(name)
    if not is_foreign(name):
        known = f"use {', '.join(NETS)}, timm:NAME, torchvision:NAME, or your own as package.module:function"
        raise InputError(f"unknown net {name!r}: {known}")
    factory: Callable[..., nn.Module] = import_foreign("net", name)
    return factory


NETS: dict[str, Callable[..., nn.Module]] = {
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
