"""What a trained model takes, from a raw sample to the input of its nets. One class per kind of sample.

Each is a module that turns a batch of raw samples into the nets' input, so that it can be exported with them.
Shapes: N samples, H x W pixels, channels 1 or 3, D numbers of a vector.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dividemix.data.augment import centre_crop, cropped_shape, to_input
from dividemix.data.features import FARTHEST
from dividemix.data.readers.pixels import as_images
from dividemix.data.source import Kind
from dividemix.data.vectors import check_vectors
from dividemix.errors import InputError


class ImageInput(nn.Module):
    """Images of one shape (H, W, channels); with a `crop_size`, the nets get the central square of that size.

    `mean` and `std` are per channel, for pixels in [0, 1].
    """

    kind: ClassVar[Kind] = "images"
    raw_type: ClassVar[torch.dtype] = torch.uint8

    def __init__(self, shape: tuple[int, ...], mean: Sequence[float], std: Sequence[float], crop_size: int = 0):
        super().__init__()
        self.shape, self.crop_size = tuple(shape), crop_size
        self.net_shape: tuple[int, ...] = cropped_shape(shape, crop_size)
        self.mean = nn.Buffer(torch.tensor(mean, dtype=torch.float32), persistent=False)
        self.std = nn.Buffer(torch.tensor(std, dtype=torch.float32), persistent=False)
        self._described = {"mean": list(mean), "std": list(std)}

    def forward(self, images: Tensor) -> Tensor:
        """The nets' input (N, channels, h, w) of uint8 images (N, H, W, channels)."""
        return to_input(centre_crop(images, self.crop_size), self.mean, self.std)

    def describe(self) -> dict[str, Any]:
        """The part `preprocessing` of config.json."""
        height, width, channels = self.shape
        return {
            "height": height,
            "width": width,
            "channels": channels,
            "mode": "L" if channels == 1 else "RGB",
            "resize": "bicubic, antialiased, keeping the aspect, until the image just covers height x width",
            "crop": "centre",
            "crop_size": self.crop_size,
            "value_range": [0, 1],
            **self._described,
        }

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "ImageInput":
        """The input that `describe` described. Raises ValueError, KeyError or TypeError if that is wrong."""
        shape = tuple(count(values, name) for name in ("height", "width", "channels"))
        mean, std = (_numbers(values, name, shape[2]) for name in ("mean", "std"))
        if min(std) <= 0:
            raise ValueError("std must be above zero")
        crop_size = values.get("crop_size", 0)  # models of the first version have none
        if type(crop_size) is not int or not 0 <= crop_size <= min(shape[:2]):
            raise ValueError(f"crop_size is {crop_size!r}: it must be an integer >= 0 and <= the images' sides")
        return cls(shape, mean, std, crop_size)

    def checked(self, images: NDArray[Any]) -> NDArray[np.uint8]:
        """The images as uint8 (N, H, W, channels), or InputError."""
        if images.dtype == np.uint8 and images.shape[1:] == self.shape:  # even if channels could also be first
            return images
        shaped = as_images(images, "images") if images.ndim in (3, 4) else images
        if shaped.ndim != 4 or shaped.shape[1:] != self.shape:
            height, width, channels = self.shape
            pixels = f"{height}, {width}"
            many = [f"(N, {pixels}, {channels})", f"(N, {channels}, {pixels})", f"(N, {pixels})"]
            one = [f"({pixels}, {channels})", f"({pixels})"]
            if channels != 1:
                del many[-1], one[-1]
            raise InputError(
                f"images are {images.dtype} of shape {images.shape}: this model takes {', '.join(many)}, or one image "
                f"{' or '.join(one)}; a list of images, or of paths, may have any size"
            )
        return shaped

    def examples(self) -> NDArray[Any]:
        """Five images to compare programs with: black, white, of two colours, and random ones."""
        images = np.random.default_rng(0).integers(0, 256, (5, *self.shape), dtype=np.uint8)
        images[0], images[1] = 0, 255
        images[2] = np.where(images[2] < 128, 0, 255)
        return images


class VectorInput(nn.Module):
    """Vectors of D numbers; `mean` and `std` (D,) are those of the training vectors.

    `names` (D,) are those of the columns of the table that the vectors were, if it had names.
    """

    kind: ClassVar[Kind] = "vectors"
    raw_type: ClassVar[torch.dtype] = torch.float32

    def __init__(self, mean: Sequence[float], std: Sequence[float], names: tuple[str, ...] | None = None):
        super().__init__()
        self.names = names
        self.shape: tuple[int, ...] = (len(mean),)
        self.net_shape = self.shape
        self.mean = nn.Buffer(torch.tensor(mean, dtype=torch.float64))
        self.std = nn.Buffer(torch.tensor(std, dtype=torch.float64))

    def forward(self, vectors: Tensor) -> Tensor:
        """The nets' input (N, D) of float32 vectors (N, D): standardised, absurd values clipped."""
        return ((vectors.double() - self.mean) / self.std).clamp(-FARTHEST, FARTHEST).float()

    def describe(self) -> dict[str, Any]:
        """The part `preprocessing` of config.json; mean and std are in model.safetensors."""
        names = {} if self.names is None else {"feature_names": list(self.names)}
        return {"num_features": self.shape[0], **names, "standardise": "subtract input.mean, divide by input.std"}

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "VectorInput":
        """The input that `describe` described, with a mean of 0; as `ImageInput.of`."""
        num_features = count(values, "num_features")
        if num_features > 1 << 24:
            raise ValueError(f"num_features is {num_features}: no model has so many")
        names = values.get("feature_names")  # of a table; earlier models have none
        if names is not None:
            is_named = isinstance(names, list) and all(isinstance(name, str) for name in names)
            if not is_named or len(names) != num_features or len(set(names)) < num_features:
                raise ValueError("feature_names must be different names, one for each of num_features")
            names = tuple(names)
        return cls([0.0] * num_features, [1.0] * num_features, names)

    def checked(self, vectors: NDArray[Any]) -> NDArray[np.float32]:
        """The vectors as float32 (N, D), or InputError."""
        if vectors.ndim == 2 and not len(vectors):
            return np.empty((0, *self.shape), dtype=np.float32)
        check_vectors(vectors, "vectors", (0, *self.shape))
        return vectors.astype(np.float32, copy=False)

    def examples(self) -> NDArray[Any]:
        """Five vectors to compare programs with: the mean, and random ones around it."""
        drawn = np.random.default_rng(0).normal(size=(5, *self.shape))
        drawn[0] = 0
        around: NDArray[np.float64] = drawn * self.std.cpu().numpy() + self.mean.cpu().numpy()
        return around.astype(np.float32)


def count(values: Mapping[str, Any], name: str) -> int:
    """A number of things, at least one."""
    value = values[name]
    if type(value) is not int or value < 1:
        raise ValueError(f"{name} is {value!r}: it must be an integer >= 1")
    return value


def _numbers(values: Mapping[str, Any], name: str, length: int) -> tuple[float, ...]:
    numbers = tuple(values[name])
    if len(numbers) != length or not all(type(number) in (int, float) and math.isfinite(number) for number in numbers):
        raise ValueError(f"{name} is {values[name]!r}: it must be {length} finite numbers")
    return numbers
