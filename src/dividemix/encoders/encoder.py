"""What an encoder is, and an encoder of images made of a net and its preprocessing.

Shapes: R samples in a batch, H x W pixels, channels 1 or 3, D numbers of a vector.
"""

import hashlib
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dividemix.engine.device import choose_dtype
from dividemix.errors import InputError

Sample = Literal["images", "texts", "rows"]
IMAGENET = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}


class Encoder(Protocol):
    """A frozen model that turns samples into vectors."""

    @property
    def takes(self) -> Sample:
        """What it encodes."""

    def encode(self, batch: Any) -> Tensor:
        """Vectors (R, D), float32 on the CPU, of R samples.

        Samples are uint8 images (R, H, W, channels), a list of R texts, or rows (R,) of a table.
        """

    def describe(self) -> dict[str, Any]:
        """What identifies the encoder, in JSON's types: equal if and only if it gives the same vectors."""


@dataclass(frozen=True, kw_only=True)
class Preprocessing:
    """How images are prepared: resized until the shorter side is `size`, cropped at the centre, normalised."""

    size: int = 256
    crop: int = 224
    mean: tuple[float, ...] = IMAGENET["mean"]
    std: tuple[float, ...] = IMAGENET["std"]
    interpolation: str = "bicubic"  # or bilinear


class ImageEncoder(nn.Module):
    """A net without its head, with its preprocessing: raw images in, vectors out."""

    takes: ClassVar[Sample] = "images"

    def __init__(self, name: str, net: nn.Module, preprocessing: Preprocessing, version: str = ""):
        super().__init__()
        self.name, self.preprocessing, self.version = name, preprocessing, version
        self.net = net.eval().requires_grad_(False).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.mean, self.std = (
            nn.Buffer(255 * torch.tensor(values).view(-1, 1, 1), persistent=False)
            for values in (preprocessing.mean, preprocessing.std)
        )
        self._digest = weights_digest(net)

    def forward(self, images: Tensor) -> Tensor:
        """Vectors (R, D) of uint8 images (R, H, W, channels) of any one size."""
        x = images.permute(0, 3, 1, 2).to(self.mean.dtype)
        height, width, channels = images.shape[1:]
        if channels < len(self.mean):
            x = x.expand(-1, len(self.mean), -1, -1)
        one, crop = self.preprocessing, self.preprocessing.crop
        if min(height, width) != one.size:
            sides = [max(one.size, round(side * one.size / min(height, width))) for side in (height, width)]
            x = F.interpolate(x, size=sides, mode=one.interpolation, antialias=True).clamp(0, 255)
        top, left = ((side - crop) // 2 for side in x.shape[2:])
        x = (x[:, :, top : top + crop, left : left + crop] - self.mean) / self.std
        vectors: Tensor = self.net(x.contiguous(memory_format=torch.channels_last))
        return vectors.flatten(1) if vectors.ndim != 4 else vectors.mean(dim=(2, 3))

    @torch.inference_mode()
    def encode(self, batch: Any) -> Tensor:
        """As `Encoder.encode`. A GPU computes in 16 bits; a CPU does not, since few are faster with them."""
        images = torch.as_tensor(batch).to(self.mean.device)
        dtype = choose_dtype("auto", images.device)
        try:
            with torch.autocast(images.device.type, dtype, enabled=dtype != torch.float32):
                vectors = self.eval()(images)
        except (RuntimeError, AssertionError, ValueError) as error:  # a net may want images of another size
            if "out of memory" in str(error).lower() or "alloc" in str(error).lower():
                raise
            first_line = (str(error).splitlines() or [""])[0]
            size = self.preprocessing.crop
            raise InputError(f"encoder {self.name!r} does not take images of {size} x {size}: {first_line}") from error
        if not isinstance(vectors, Tensor) or vectors.ndim != 2:
            raise InputError(f"encoder {self.name!r} does not give vectors: its net must give a tensor (N, D)")
        return vectors.float().cpu()

    def describe(self) -> dict[str, Any]:
        """As `Encoder.describe`: the weights by their digest, so that a file may move."""
        prepared = {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self.preprocessing).items()}
        known = self.name.partition("=")[0]  # without the file of weights
        return {"name": known, "weights": self._digest, "version": self.version, "preprocessing": prepared}


def weights_digest(net: nn.Module) -> str:
    """A digest of all weights and buffers of a net, by name."""
    digest = hashlib.blake2b(digest_size=16)
    for name, tensor in sorted(net.state_dict().items()):
        raw = tensor.detach().cpu().contiguous()
        digest.update(f"{name} {tuple(raw.shape)} {raw.dtype}".encode())
        digest.update(raw.reshape(-1).view(torch.uint8).numpy().data if raw.numel() else b"")
    return digest.hexdigest()
