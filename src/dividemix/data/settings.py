"""Settings of the views that training makes of samples. No torch import."""

from dataclasses import dataclass
from typing import Literal

from dividemix.settings import Settings, setting


@dataclass(frozen=True, kw_only=True)
class ViewSettings(Settings):
    """How an image is cropped and mirrored at random, and how much noise a vector gets."""

    crop_padding: int = setting(4, "pixels padded on each side before the random crop", low=0)
    crop_border: Literal["black", "reflected"] = setting(
        "black", "what is padded: black pixels, or the image reflected at its edges"
    )
    crop_size: int = setting(
        0, "side of the crops: random in training, at the centre elsewhere; 0: the images' own size", low=0
    )
    flip: bool = setting(True, "mirror images at random")
    cutout: int = setting(
        0, "pixels: the side of a square that is covered at a random place of each image; 0: none", low=0
    )
    noise_std: float = setting(
        0.1, "vectors: deviation of the random noise on each number, as a multiple of its own deviation", low=0
    )
