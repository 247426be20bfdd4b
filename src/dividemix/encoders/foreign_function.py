"""package.module:function: an encoder of your own, made by a function without arguments.

The function returns one of these:

- a torch.nn.Module that takes normalised images (R, 3, H, W) and gives vectors (R, D). Its attributes `image_size`
  (default 224), `mean` and `std` (defaults: ImageNet's) say how images are prepared;
- an object with `takes`, "images" or "texts", and `encode(batch)`, which gives vectors (R, D) of uint8 images
  (R, H, W, channels) or of a list of R texts. Its `describe()`, if there is one, says what identifies it.
"""

import hashlib
import inspect
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dividemix.encoders.encoder import IMAGENET, Encoder, ImageEncoder, Preprocessing, Sample
from dividemix.errors import InputError
from dividemix.foreign import import_foreign


class ForeignEncoder:
    """An object with `takes` and `encode`, checked at each batch."""

    def __init__(self, name: str, made: Any, source: str):
        self.takes: Sample = made.takes
        self._name, self._made, self._source = name, made, source

    def encode(self, batch: Any) -> Tensor:
        """As `Encoder.encode`. Raises InputError unless the result is one finite vector for each sample."""
        vectors = torch.as_tensor(np.asarray(self._made.encode(batch)), dtype=torch.float32)
        if vectors.ndim != 2 or len(vectors) != len(batch):
            shape = tuple(vectors.shape)
            raise InputError(f"encoder {self._name!r} gave {shape} for {len(batch)} samples: must be ({len(batch)}, D)")
        return vectors

    def describe(self) -> dict[str, Any]:
        """As `Encoder.describe`: by the object's own words, and by the file that it comes from."""
        own = self._made.describe() if hasattr(self._made, "describe") else {}
        return {"name": self._name, "weights": self._source, "own": own}


def load(name: str) -> Encoder:
    """The encoder that the function of this name makes. Its code is run. Raises InputError if it makes none."""
    function = import_foreign("encoder", name)
    try:
        made = function()
        source = hashlib.blake2b(Path(inspect.getsourcefile(function) or "").read_bytes(), digest_size=16).hexdigest()
    except Exception as error:  # foreign code may raise anything
        first_line = (str(error).splitlines() or [""])[0]
        raise InputError(f"encoder {name!r} cannot be made: {type(error).__name__}: {first_line}") from error
    if isinstance(made, nn.Module) and not hasattr(made, "encode"):
        size = int(getattr(made, "image_size", 224))
        mean, std = (tuple(map(float, getattr(made, key, IMAGENET[key]))) for key in ("mean", "std"))
        return ImageEncoder(name, made, Preprocessing(size=size, crop=size, mean=mean, std=std), source)
    if not callable(getattr(made, "encode", None)) or getattr(made, "takes", None) not in ("images", "texts"):
        wanted = 'a torch.nn.Module, or an object with encode(batch) and takes ("images" or "texts")'
        raise InputError(f"encoder {name!r} gave {type(made).__name__}: it must give {wanted}")
    return ForeignEncoder(name, made, source)
