"""timm:MODEL, or timm:MODEL=FILE with weights of your own: a model of timm without its head."""

from pathlib import Path

from dividemix.encoders.encoder import ImageEncoder, Preprocessing
from dividemix.errors import InputError
from dividemix.nets.weights import load_weights
from dividemix.optional import import_optional, loading

_ADVICE = "check the name (timm.list_models()), or give a file: timm:MODEL=weights.safetensors"


def load(model: str, weights: str, name: str) -> ImageEncoder:
    """The encoder; its size and normalisation are those of the model's own configuration.

    Raises InputError for a model of a hub or of a folder: its configuration can make timm unpickle its weights.
    """
    if ":" in model:
        raise InputError(f"encoder {name!r}: only models that timm itself lists can be named; {_ADVICE}")
    timm = import_optional("timm", name, "timm")
    with loading(name, _ADVICE):
        net = timm.create_model(model, pretrained=not weights, num_classes=0)
        if weights:
            load_weights(net, Path(weights))
        config = timm.data.resolve_model_data_config(net)
    crop = int(config["input_size"][-1])
    prepared = Preprocessing(
        size=max(crop, int(crop / config.get("crop_pct", 1.0))),
        crop=crop,
        mean=tuple(config["mean"]),
        std=tuple(config["std"]),
        interpolation="bilinear" if config.get("interpolation") == "bilinear" else "bicubic",
    )
    return ImageEncoder(name, net, prepared, f"timm {timm.__version__}")
