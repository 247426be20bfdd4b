"""From a job to its data, and to nets on a device, as fast as it allows: all that is there before the first epoch."""

import torch
from torch import nn

from dividemix.config import Config
from dividemix.data.augment import cropped_shape
from dividemix.data.noise import NoiseSpec
from dividemix.data.source import Source
from dividemix.engine.acceleration import autocast_net, compile_net, worth_compiling
from dividemix.engine.device import choose_device, choose_dtype
from dividemix.engine.state import State
from dividemix.methods import find_method
from dividemix.nets.build import build_net
from dividemix.planning.job import Job
from dividemix.planning.material import Material, gather


def prepare(
    job: Job, source: Source | None = None, *, noise: NoiseSpec | None = None, may_compile: bool = True
) -> tuple[Material, State]:
    """The job's data, with its noise or another, and its state before the first epoch.

    Raises:
        InputError: if the job is wrong, or its data.
    """
    find_method(job.method)  # before minutes are spent on reading data
    device = choose_device(job.config.device)
    material = gather(job, device, source, noise)
    state = start(
        job.config,
        job.method,
        num_classes=len(material.classes),
        image_shape=material.image_shape,
        num_samples=len(material.train.labels),
        device=device,
        may_compile=may_compile,
    )
    return material, state


def start(
    config: Config,
    method: str,
    *,
    num_classes: int,
    image_shape: tuple[int, ...],
    num_samples: int,
    device: torch.device,
    may_compile: bool = True,
) -> State:
    """The state before the first epoch of a method's training on num_samples samples, cropped as config says.

    Raises:
        InputError: if the method is unknown, or the net does not fit.
    """
    num_nets = find_method(method).num_nets(config)
    if len(image_shape) == 3:
        image_shape = cropped_shape(image_shape, config.crop_size)
    dtype = choose_dtype(config.precision, device)
    nets: list[nn.Module] = []
    for k in range(num_nets):
        seed = 2 * config.seed + k  # different weights for each net of each seed
        net = build_net(config, num_classes=num_classes, image_shape=image_shape, seed=seed)
        net = net.to(device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        if dtype != torch.float32:
            autocast_net(net, device, dtype)
        nets.append(net)
    # A sample is forwarded about six times an epoch for each net, counting a backward as two.
    num_rows = 6 * num_nets * config.num_divided(num_samples) * config.epochs
    if may_compile and (
        config.compile == "always"
        or (config.compile == "auto" and worth_compiling(nets[0], image_shape, num_rows, device))
    ):
        for net in nets:
            compile_net(net)
    return State.start(nets, num_samples, config, scale_loss=dtype == torch.float16)
