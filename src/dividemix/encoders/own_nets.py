"""net:NAME=FILE: a network of this package for photographs, with weights from a file, without its head."""

from pathlib import Path

from dividemix.encoders.encoder import ImageEncoder, Preprocessing
from dividemix.encoders.torchvision_models import without_head
from dividemix.errors import InputError
from dividemix.nets.build import build_net
from dividemix.nets.settings import NetSettings
from dividemix.nets.weights import load_weights

_SIZES = {"resnet50": (256, 224), "inception_resnet_v2": (333, 299)}  # side, and side of the crop


def load(model: str, weights: str, name: str) -> ImageEncoder:
    """The encoder; images are prepared as for ImageNet, which the weights are supposed to come from."""
    if model not in _SIZES:
        raise InputError(f"encoder {name!r}: the nets with weights to load are {', '.join(_SIZES)}")
    if not weights:
        raise InputError(f"encoder {name!r} has no weights: name a file, as net:{model}=weights.safetensors")
    size, crop = _SIZES[model]
    net = build_net(NetSettings(net=model), num_classes=2, image_shape=(crop, crop, 3), seed=0)
    load_weights(net, Path(weights))
    return ImageEncoder(name, without_head(net), Preprocessing(size=size, crop=crop, interpolation="bilinear"))
