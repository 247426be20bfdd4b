"""open_clip:MODEL/WEIGHTS: the image side of a CLIP model; WEIGHTS is a name that open_clip knows, or a file."""

from typing import Any

from torch import Tensor, nn

from dividemix.encoders.encoder import ImageEncoder, Preprocessing
from dividemix.errors import InputError
from dividemix.optional import import_optional, loading

_ADVICE = "check the names (open_clip.list_pretrained()), or give a file: open_clip:MODEL/weights.safetensors"


class _ImageSide(nn.Module):
    """The part of a CLIP model that encodes images."""

    def __init__(self, model: Any):
        super().__init__()
        self.visual = model.visual

    def forward(self, images: Tensor) -> Tensor:
        """Vectors (R, D) of length 1, as CLIP compares them."""
        vectors: Tensor = self.visual(images)
        return nn.functional.normalize(vectors, dim=1)


def load(model: str, weights: str, name: str) -> ImageEncoder:
    """The encoder; its size and normalisation are those of the model's own configuration.

    Raises InputError for a model of a hub, and for files of weights that are no safetensors: they may be pickles.
    """
    model, _, pretrained = model.partition("/")
    if not (pretrained or weights):
        raise InputError(f"encoder {name!r} has no weights: write open_clip:MODEL/WEIGHTS, such as ViT-B-32/openai")
    given = pretrained or weights
    if ":" in model or (("/" in given or "." in given) and not given.endswith(".safetensors")):
        raise InputError(f"encoder {name!r}: only models that open_clip itself lists can be named; {_ADVICE}")
    open_clip = import_optional("open_clip", name, "open_clip_torch")
    with loading(name, _ADVICE):
        whole = open_clip.create_model(model, pretrained=given)
        config = open_clip.get_model_preprocess_cfg(whole)
    size = config["size"]
    side = int(size[0] if isinstance(size, list | tuple) else size)
    prepared = Preprocessing(size=side, crop=side, mean=tuple(config["mean"]), std=tuple(config["std"]))
    return ImageEncoder(name, _ImageSide(whole), prepared, f"open_clip {open_clip.__version__}")
