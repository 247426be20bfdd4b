"""Networks that a Python program gives as objects: a factory, or a network itself. Files store a name for them."""

import copy
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn

from dividemix.errors import InputError, shown
from dividemix.foreign import OBJECT, forget, is_foreign, known_object, remember


def net_name(net: Any) -> str:
    """A name for the setting `net`: text stays as it is, an object gets a name that this process knows.

    A function or class that can be imported is named as package.module:NAME, so that other processes find it. All
    others are called python:NAME: a stored run asks for them again. Raises InputError for what makes no network.
    """
    if isinstance(net, str):
        return net
    if callable(net) and not isinstance(net, nn.Module) and (name := _importable(net)):
        return name
    name, is_new = _name(net)
    if is_new:
        remember(name, _factory(net))
    return name


@contextmanager
def named_for_now(net: Any) -> Iterator[str]:
    """The name of `net_name`, known until the networks are made: an object that is new is forgotten afterwards."""
    is_new = not isinstance(net, str) and _name(net)[1]
    name = net_name(net)
    try:
        yield name
    finally:
        if is_new:
            forget(name)


def _name(net: Any) -> tuple[str, bool]:
    """A name for an object, and whether it is new: one object has one name."""
    word = getattr(net, "__name__", type(net).__name__)
    stem = f"{OBJECT}{'factory' if word == '<lambda>' else word}"
    number, name = 1, stem
    while (known := known_object(name)) is not None:
        if known is net or getattr(known, "of", None) is net:
            return name, False
        number += 1
        name = f"{stem}-{number}"
    return name, True


def use_for(name: Any, net: Any) -> None:
    """Take an object for the net that a stored run or model names. Raises InputError if it names one of ours."""
    if not isinstance(name, str) or not is_foreign(name):
        raise InputError(f"net is given, but the stored net is {shown(name)}, which needs no object: leave net out")
    remember(name, _factory(net))


class _Copies:
    """A factory that returns copies of one network, whose weights they start from."""

    def __init__(self, net: nn.Module):
        self.of = net

    def __call__(self, num_classes: int) -> nn.Module:
        return copy.deepcopy(self.of)


def _factory(net: Any) -> Callable[..., nn.Module]:
    if isinstance(net, nn.Module):
        return _Copies(net)
    if not callable(net):
        raise InputError(f"net is {shown(net)}: must be a name, a torch.nn.Module, or a function that makes one")
    factory: Callable[..., nn.Module] = net
    return factory


def _importable(net: Any) -> str:
    """package.module:NAME, if that is the object; else empty."""
    module, name = getattr(net, "__module__", None), getattr(net, "__qualname__", "")
    if not module or module == "__main__" or not name.isidentifier():
        return ""
    return f"{module}:{name}" if getattr(sys.modules.get(module), name, None) is net else ""
