"""timm:NAME and torchvision:NAME: networks of these packages, with random or with pretrained weights."""

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from dividemix.errors import InputError
from dividemix.optional import import_optional, loading


def is_packaged(name: str) -> bool:
    """Whether the name is that of a network of a package."""
    return name.partition(":")[0] in _MAKERS and ":" in name


def packaged_factory(name: str) -> Callable[..., nn.Module]:
    """What makes the network of that name, without pretrained weights, for num_classes and in_channels."""
    source, _, model = name.partition(":")
    make, package = _MAKERS[source], import_optional(source, name, source)

    def factory(num_classes: int, in_channels: int) -> nn.Module:
        with loading(name, "check the name"):
            return make(package, model, in_channels, num_classes=num_classes)

    return factory


def packaged_weights(name: str, in_channels: int) -> dict[str, Tensor]:
    """The pretrained weights of the network of that name. Raises InputError if they cannot be had."""
    if not is_packaged(name):
        raise InputError(f"pretrained is true, but net is {name!r}: use timm:NAME or torchvision:NAME, or give weights")
    source, _, model = name.partition(":")
    package = import_optional(source, name, source)
    with loading(name, "check the name and the network, or give a file of weights by weights"):
        weights: dict[str, Tensor] = _MAKERS[source](package, model, in_channels, pretrained=True).state_dict()
    return weights


def _timm(package: Any, model: str, in_channels: int, **options: Any) -> nn.Module:
    if ":" in model:  # of a hub or a folder, whose configuration can make timm unpickle its weights
        raise InputError(f"net 'timm:{model}': only models that timm itself lists can be named")
    net: nn.Module = package.create_model(model, in_chans=in_channels, **options)
    return net


def _torchvision(package: Any, model: str, in_channels: int, *, pretrained: bool = False, **options: Any) -> nn.Module:
    if in_channels != 3:
        raise InputError(f"net 'torchvision:{model}' takes colour images, these are grey: use timm:{model}")
    net: nn.Module = package.models.get_model(model, weights="DEFAULT" if pretrained else None, **options)
    return net


_MAKERS: dict[str, Callable[..., nn.Module]] = {"timm": _timm, "torchvision": _torchvision}
