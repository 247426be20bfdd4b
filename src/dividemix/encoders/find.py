"""Find an encoder by its name, SOURCE:MODEL."""

import dataclasses
from collections.abc import Callable

import torch
from torch import nn

from dividemix.encoders import (
    foreign_function,
    open_clip_models,
    own_nets,
    sentence_transformers_models,
    timm_models,
    tokens,
    torchvision_models,
    transformers_models,
)
from dividemix.encoders.encoder import Encoder, ImageEncoder
from dividemix.errors import InputError
from dividemix.foreign import PACKAGES, import_foreign, is_foreign

SOURCES: dict[str, Callable[[str, str, str], Encoder]] = {
    "timm": timm_models.load,
    "torchvision": torchvision_models.load,
    "open_clip": open_clip_models.load,
    "transformers": transformers_models.load,
    "sentence-transformers": sentence_transformers_models.load,
    "tokens": tokens.load,
    "net": own_nets.load,
}
assert SOURCES.keys() == set(PACKAGES)


def find_encoder(name: str, device: torch.device | str = "cpu", image_size: int | None = None) -> Encoder:
    """The encoder of that name on the device; images are resized to `image_size`, if it is given, and not cropped.

    Raises:
        InputError: if there is no such encoder, or it cannot be loaded: what to install, or which file to give.
    """
    check_name(name)
    if is_foreign(name):
        encoder = foreign_function.load(name)
    else:
        source, _, model = name.partition(":")
        model, _, weights = model.partition("=")
        encoder = SOURCES[source](model, weights, name)
    if isinstance(encoder, ImageEncoder) and image_size is not None:
        encoder.preprocessing = dataclasses.replace(encoder.preprocessing, size=image_size, crop=image_size)
    if isinstance(encoder, nn.Module):
        encoder.to(device)
    return encoder


def check_name(name: str) -> None:
    """Raise InputError unless the name is of a source and its model, or of your own function, which is imported."""
    source, _, model = name.partition(":")
    if is_foreign(name):
        import_foreign("encoder", name)
    elif source not in SOURCES or not model:
        known = ", ".join(f"{one}:MODEL" for one in SOURCES)
        meant = "" if ":" in name else f"; did you mean torchvision:{name} or timm:{name}?"
        raise InputError(f"unknown encoder {name!r}: use {known}, or your own as package.module:function{meant}")
