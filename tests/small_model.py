"""A model of tiny nets with random weights, and image files for it."""

from pathlib import Path

import numpy as np
import torch
from PIL import Image

from dividemix.model.inputs import ImageInput
from dividemix.model.model import Model
from dividemix.nets.build import build_net
from dividemix.nets.settings import NetSettings

CLASSES = ("zebra", "ant", "bee, wild")  # not in order, one that CSV must quote


def small_model(*, net: str = "small_cnn", num_nets: int = 2, image_shape: tuple[int, int, int] = (8, 8, 3)) -> Model:
    """Nets whose BatchNorm has seen images and whose predictions are far from even, so that a mix-up shows."""
    settings = NetSettings(net=net, net_width=2)
    nets = []
    for k in range(num_nets):
        built = build_net(settings, num_classes=len(CLASSES), image_shape=image_shape, seed=k)
        height, width, channels = image_shape
        x = torch.randn(64, channels, height, width, generator=torch.Generator().manual_seed(k))
        with torch.no_grad():
            built.train()(2 * x)
            list(built.parameters())[-2].mul_(100)  # the weights of the last layer
        nets.append(built)
    channels = image_shape[2]
    mean, std = (0.5, 0.4, 0.3)[:channels], (0.2, 0.25, 0.3)[:channels]
    return Model(nets, classes=CLASSES, takes=ImageInput(image_shape, mean, std), net=settings)


def small_images(number: int, image_shape: tuple[int, ...] = (8, 8, 3)) -> np.ndarray:
    """Random uint8 images."""
    return np.random.default_rng(number).integers(0, 256, (number, *image_shape), dtype=np.uint8)


def save_images(folder: Path, images: np.ndarray, names: list[str]) -> list[Path]:
    """Each image as a file of its name, without loss."""
    paths = [folder / name for name in names]
    for path, image in zip(paths, images, strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(path)
    return paths
