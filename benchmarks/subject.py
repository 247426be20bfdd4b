"""What is measured on: images, labels half of which are noise, and two nets a little way into their training.

Shapes: N images (N, H, W, channels) uint8, C classes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from benchmarks.contract import Options
from dividemix.algorithm.dividemix import warm_up_epoch
from dividemix.data.dataset import ArrayData
from dividemix.data.noise import NoiseSpec, add_noise
from dividemix.data.readers.cifar import read_cifar10
from dividemix.engine.acceleration import compile_net
from dividemix.engine.kernels.choice import choose_kernels, use_own_kernels
from dividemix.engine.state import State
from dividemix.methods.dividemix import DivideMixSettings
from dividemix.nets.build import build_net

Images = NDArray[np.uint8]
Labels = NDArray[np.int64]

# CIFAR-10's, as the released code has them.
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)

# Evaluated in batches of one size, training and test images alike: every further size is one more graph to compile.
_QUICK_SIZES, _FULL_SIZES = (1024, 512), (10_000, 5_000)


@dataclass(frozen=True, eq=False)
class Pictures:
    """Training images with noisy labels, and test images with true ones."""

    name: str
    train_images: Images
    train_labels: Labels
    test_images: Images
    test_labels: Labels


@cache
def pictures(options: Options) -> Pictures:
    """CIFAR-10 or something of its size, with 50 % symmetric noise.

    Raises:
        InputError: if the folder of --cifar does not hold CIFAR-10.
    """
    num_train, num_test = _QUICK_SIZES if options.quick else _FULL_SIZES
    if options.cifar is None:
        name = "synthetic images"
        images, labels = draw_images(num_train + num_test)
        train, test = (images, labels), (images[num_train:], labels[num_train:])
    else:
        name = "CIFAR-10 images"
        source = read_cifar10(options.cifar)
        assert isinstance(source.train_samples, np.ndarray)
        assert isinstance(source.test_samples, np.ndarray)
        assert source.test_labels is not None
        train, test = (source.train_samples, source.train_labels), (source.test_samples, source.test_labels)
    true_labels = train[1][:num_train]
    noisy = add_noise(true_labels, NoiseSpec("symmetric", 0.5), num_classes=10, seed=1).labels
    return Pictures(name, train[0][:num_train], noisy, test[0][:num_test], test[1][:num_test])


def draw_images(num_images: int, *, num_classes: int = 10, side: int = 32) -> tuple[Images, Labels]:
    """Images (N, side, side, 3) that a net can tell apart, a coarse pattern for each class under noise; labels (N,)."""
    rng = np.random.default_rng(1)
    coarse = rng.normal(128, 40, (num_classes, side // 4, side // 4, 3)).astype(np.float32)
    patterns = coarse.repeat(4, axis=1).repeat(4, axis=2)
    labels = rng.integers(num_classes, size=num_images)
    noise = rng.standard_normal((num_images, side, side, 3), dtype=np.float32)
    return np.clip(patterns[labels] + 40 * noise, 0, 255).astype(np.uint8), labels


def array_data(images: Images, labels: Labels, config: DivideMixSettings) -> ArrayData:
    """The images as DivideMix trains on them."""
    return ArrayData(
        images,
        labels,
        mean=MEAN,
        std=STD,
        crop_padding=config.crop_padding,
        flip=config.flip,
    )


def two_nets(config: DivideMixSettings, *, num_classes: int = 10, side: int = 32) -> list[nn.Module]:
    """Both nets as torch makes them: default memory format, eager."""
    return [build_net(config, num_classes=num_classes, image_shape=(side, side, 3), seed=k) for k in range(2)]


def fast_nets(config: DivideMixSettings) -> list[nn.Module]:
    """Both nets as a long run has them: channels_last, compiled, with the kernels that are faster here."""
    torch.compiler.reset()  # graphs of an earlier benchmark count against the compiler's limit
    nets = two_nets(config)
    choice = choose_kernels("auto", nets[0], (32, 32, 3), config.batch_size)
    for net in nets:
        net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        if choice.kernels == "own":
            use_own_kernels(net)
        compile_net(net)
    return nets


@cache
def warmed_up(options: Options, config: DivideMixSettings) -> Mapping[str, Tensor]:
    """The tensors of a state in which both nets have had an epoch of warm-up: their losses tell samples apart."""
    given = pictures(options)
    data = array_data(given.train_images, given.train_labels, config)
    state = State.start(two_nets(config), config)
    warm_up_epoch(state, data, config)
    return state.tensors()


def restore(state: State, saved: Mapping[str, Tensor], config: DivideMixSettings) -> None:
    """Put the state where warm-up ends; `saved` stays as it is."""
    state.load({name: tensor.clone() for name, tensor in saved.items()}, config.warmup_epochs)
