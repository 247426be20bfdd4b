"""torchvision:MODEL, or torchvision:MODEL=FILE with weights of your own: a model of torchvision without its head."""

from pathlib import Path
from typing import Any

from torch import nn

from dividemix.encoders.encoder import ImageEncoder, Preprocessing
from dividemix.nets.weights import load_weights
from dividemix.optional import import_optional, loading

_ADVICE = "check the name (torchvision.models.list_models()), or give a file: torchvision:MODEL=weights.pth"


def load(model: str, weights: str, name: str) -> ImageEncoder:
    """The encoder; its size and normalisation are those of the model's default weights."""
    torchvision = import_optional("torchvision", name, "torchvision")
    with loading(name, _ADVICE):
        default = torchvision.models.get_model_weights(model).DEFAULT
        net = torchvision.models.get_model(model, weights=None if weights else default)
        if weights:
            load_weights(net, Path(weights))
        transforms = default.transforms()
    prepared = Preprocessing(
        size=_side(transforms.resize_size),
        crop=_side(transforms.crop_size),
        mean=tuple(transforms.mean),
        std=tuple(transforms.std),
        interpolation="bicubic" if "bicubic" in str(transforms.interpolation).lower() else "bilinear",
    )
    return ImageEncoder(name, without_head(net), prepared, f"torchvision {torchvision.__version__}")


def without_head(net: nn.Module) -> nn.Module:
    """The net with its last linear layer replaced by nothing, so that it gives that layer's input."""
    name = [name for name, module in net.named_modules() if isinstance(module, nn.Linear)][-1]
    parent, _, child = name.rpartition(".")
    setattr(net.get_submodule(parent), child, nn.Identity())
    return net


def _side(size: Any) -> int:
    return int(size[0] if isinstance(size, list | tuple) else size)
