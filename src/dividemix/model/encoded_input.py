"""The input of a model that was trained on the vectors of an encoder: it takes images again.

The encoder is named in config.json and loaded by that name; its weights are not part of the model's files.
Shapes: N images, H x W pixels, D numbers of a vector.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dividemix.data.source import Kind
from dividemix.encoders.encoder import Encoder, ImageEncoder, Preprocessing
from dividemix.encoders.find import find_encoder
from dividemix.errors import InputError
from dividemix.model.inputs import ImageInput, VectorInput, count
from dividemix.model.row_input import RowInput
from dividemix.model.text_input import TextInput


class EncodedInput(nn.Module):
    """Images of one shape (H, W, channels), turned into vectors by an encoder, which are standardised."""

    kind: ClassVar[Kind] = "images"
    raw_type: ClassVar[torch.dtype] = torch.uint8

    def __init__(self, shape: tuple[int, ...], name: str, encoder: Encoder, vectors: VectorInput):
        super().__init__()
        self.shape, self.name, self.vectors = tuple(shape), name, vectors
        self.net_shape = vectors.net_shape
        self.encoder: Any = encoder  # a module if its weights are torch's
        self._images = ImageInput(self.shape, [0.0] * shape[2], [1.0] * shape[2])

    def forward(self, images: Tensor) -> Tensor:
        """The nets' input (N, D) of uint8 images (N, H, W, channels)."""
        if isinstance(self.encoder, nn.Module):
            return self.vectors(self.encoder(images))  # type: ignore[no-any-return]
        vectors = torch.as_tensor(self.encoder.encode(images.cpu().numpy()))
        return self.vectors(vectors.to(images.device))  # type: ignore[no-any-return]

    def describe(self) -> dict[str, Any]:
        """The part `preprocessing` of config.json."""
        about = self._images.describe()
        sizes = {name: about[name] for name in ("height", "width", "channels", "mode", "resize", "crop")}
        return {"encoder": self.name, "encoder_is": self.encoder.describe(), **sizes, **self.vectors.describe()}

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "EncodedInput":
        """The input that `describe` described: its encoder is loaded, so the name must be trusted before.

        Raises ValueError, KeyError or TypeError if the description is wrong, and InputError if the encoder cannot be
        had, or is another one than in the training.
        """
        shape = tuple(count(values, name) for name in ("height", "width", "channels"))
        name, about = values["encoder"], values["encoder_is"]
        encoder = find_encoder(name)
        if isinstance(encoder, ImageEncoder):
            known = about["preprocessing"]
            changed: dict[str, Any] = {
                key: tuple(value) if isinstance(value, list) else value for key, value in known.items()
            }
            encoder.preprocessing = Preprocessing(**changed)
        if encoder.describe().get("weights") != about.get("weights"):
            raise InputError(f"encoder {name!r} has other weights than in the training: give the file of that time")
        return cls(shape, name, encoder, VectorInput.of(values))

    def checked(self, images: NDArray[Any]) -> NDArray[np.uint8]:
        """The images as uint8 (N, H, W, channels), or InputError."""
        return self._images.checked(images)

    def examples(self) -> NDArray[Any]:
        """Five images to compare programs with."""
        return self._images.examples()


Input = ImageInput | VectorInput | EncodedInput | TextInput | RowInput
INPUTS: dict[str, Callable[[Mapping[str, Any]], Input]] = {
    "images": ImageInput.of,
    "vectors": VectorInput.of,
    "encoded images": EncodedInput.of,
    "texts": TextInput.of,
    "rows": RowInput.of,
}


def read_input(values: Mapping[str, Any]) -> Input:
    """The input of a model's config.json. Raises ValueError, KeyError or TypeError if it is wrong."""
    kind = values.get("kind", "images")  # models of 0.1 have none
    if kind == "images" and "encoder" in values["preprocessing"]:
        kind = "encoded images"
    if kind not in INPUTS:
        raise ValueError(f"kind is {kind!r}: it must be one of {', '.join(INPUTS)}")
    return INPUTS[kind](values["preprocessing"])
