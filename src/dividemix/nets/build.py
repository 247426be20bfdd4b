"""Networks by name, and any factory of a user's own given as package.module:function."""

import importlib
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from dividemix.config import Config
from dividemix.errors import InputError
from dividemix.nets.inception_resnet_v2 import InceptionResNetV2
from dividemix.nets.mlp import MLP
from dividemix.nets.preact_resnet import PreActResNet
from dividemix.nets.resnet import ResNet50
from dividemix.nets.small_cnn import SmallCNN


def build_net(config: Config, *, num_classes: int, image_shape: tuple[int, ...], seed: int) -> nn.Module:
    """The net that config names, with weights drawn from seed, for images of (H, W, channels) or vectors of (D,).

    A factory is called with num_classes=, and where its signature names them with width= and final_norm=, and with
    in_channels= for images or in_features= for vectors.

    Raises:
        InputError: if the net is unknown, or does not give one logit per class for such samples.
    """
    factory = NETS[config.net] if config.net in NETS else _import_factory(config.net)
    offered: dict[str, Any] = {"width": config.net_width, "final_norm": config.final_norm}
    if len(image_shape) == 1:
        offered["in_features"] = image_shape[0]
        samples, said = torch.zeros(2, *image_shape), f"vectors of {image_shape[0]} features"
    else:
        height, width, channels = image_shape
        offered["in_channels"] = channels
        samples, said = torch.zeros(2, channels, height, width), f"{height} x {width} x {channels} images"
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            named = inspect.signature(factory).parameters
            arguments = {key: value for key, value in offered.items() if key in named}
            net = factory(num_classes=num_classes, **arguments)
            if not isinstance(net, nn.Module):
                raise TypeError(f"it gave {type(net).__name__}, not a torch.nn.Module")
            with torch.no_grad():
                logits = net.eval()(samples)
            if tuple(logits.shape) != (2, num_classes):
                raise TypeError(f"logits of two samples have shape {tuple(logits.shape)}, not (2, {num_classes})")
        except Exception as error:  # a foreign factory may raise anything
            first_line = (str(error).splitlines() or [""])[0]
            raise InputError(
                f"net {config.net!r} does not fit {num_classes} classes of {said}: {type(error).__name__}: {first_line}"
            ) from error
    return net


def refuse_foreign(net: str, where: Path, *, trust_net: bool) -> None:
    """Raise InputError for a net that a file names and that is code of somebody's own, unless it is trusted."""
    if ":" in net and not trust_net:
        raise InputError(
            f"{where}: its net {net!r} is Python code that is no part of dividemix and would be run: if you trust it, "
            "add --trust_net (in Python: trust_net=True)"
        )


def _import_factory(name: str) -> Callable[..., nn.Module]:
    """The function that package.module:function names, looked up from the working directory too."""
    module_name, colon, function = name.partition(":")
    if not colon:
        raise InputError(f"unknown net {name!r}: known are {', '.join(NETS)}, or a factory as package.module:function")
    folder = str(Path.cwd())
    sys.path.append(folder)
    try:
        factory: Callable[..., nn.Module] = getattr(importlib.import_module(module_name), function)
    except Exception as error:  # importing foreign code may raise anything
        first_line = (str(error).splitlines() or [""])[0]
        raise InputError(f"net {name!r} cannot be imported: {type(error).__name__}: {first_line}") from error
    finally:
        sys.path.remove(folder)
    return factory


NETS: dict[str, Callable[..., nn.Module]] = {
    "preact_resnet18": PreActResNet,
    "resnet50": ResNet50,
    "inception_resnet_v2": InceptionResNetV2,
    "small_cnn": SmallCNN,
    "mlp": MLP,
}
