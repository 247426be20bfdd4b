"""From a job to its data and its nets on a device: everything that exists before the first epoch."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import nn

from dividemix.data.augment import cropped_shape
from dividemix.data.noise import NoiseSpec
from dividemix.data.source import Source
from dividemix.engine import processes
from dividemix.engine.acceleration import autocast_net, compile_net, worth_compiling
from dividemix.engine.device import choose_device, choose_dtype
from dividemix.engine.kernels.choice import choose_kernels, use_own_kernels
from dividemix.engine.memory import keep_freed_memory
from dividemix.engine.reproducible import require_limited
from dividemix.engine.shared_net import share_net
from dividemix.engine.state import State
from dividemix.errors import InputError
from dividemix.methods import find_method, loop
from dividemix.methods.method import Method, MethodSettings, TrainingSets
from dividemix.nets.build import build_net
from dividemix.planning.job import Job
from dividemix.planning.material import Material, gather

FirstWeights = Callable[[Sequence[nn.Module], tuple[int, ...]], None]  # of nets that take samples of that shape

_LARGE_BATCH = 1024  # up to here a batch may be larger than the data: samples are repeated


def prepare(
    job: Job,
    source: Source | None = None,
    *,
    noise: NoiseSpec | None = None,
    to_train: bool = True,
    first_weights: FirstWeights | None = None,
) -> tuple[Job, Material, State]:
    """The job with its kernels chosen, its data, and its state before the first epoch; `noise` replaces the job's.

    `first_weights` may change the weights of the nets before the method sees them. Unless `to_train`, nets are not
    compiled and use torch's kernels. Raises InputError if the job or its data is wrong.
    """
    method, device = find_method(job.method), checked_device(job)
    material = gather(job, device, source, noise)
    shape, num_classes = material.shape, len(material.classes)
    num_samples = len(material.train.labels)
    if job.settings.batch_size > max(num_samples, _LARGE_BATCH):
        raise InputError(
            f"batch_size is {job.settings.batch_size}: it must be at most {max(num_samples, _LARGE_BATCH)}, for"
            f" {num_samples} samples to train on"
        )
    if to_train:
        s = with_kernels(method, job.settings, num_samples, num_classes=num_classes, shape=shape, device=device)
        job = replace(job, settings=s)
    state = start(
        job.method,
        job.settings,
        material.sets,
        num_classes=num_classes,
        shape=shape,
        device=device,
        to_train=to_train,
        first_weights=first_weights,
    )
    return job, material, state


def checked_device(job: Job) -> torch.device:
    """The job's device. Raises InputError if the job lacks trusted labels, or its settings exclude each other."""
    method, s = find_method(job.method), job.settings
    if method.needs_trusted and job.trusted is None:
        raise InputError(f"method {job.method} needs samples with trusted labels: name them by trusted")
    _refuse_contradictions(method, s)
    device = choose_device(s.device)
    if s.reproducible:
        _require_reproducible(s, device)
    return device


def _refuse_contradictions(method: Method, s: MethodSettings) -> None:
    """Raise InputError if settings of the machine exclude each other, or the method excludes one."""
    if method.double_backward and s.kernels == "own":
        raise InputError("kernels is own, but the method needs second derivatives: set kernels to torch, or to auto")
    if method.double_backward and s.precision == "float16":  # its inner gradients are not scaled, and would become 0
        raise InputError("precision is float16, but the method needs second derivatives: use float32 or bfloat16")
    if s.sync_batchnorm and s.compile == "always":
        raise InputError("compile is always: with sync_batchnorm networks cannot be compiled; leave one of them out")


def with_kernels(
    method: Method,
    s: MethodSettings,
    num_samples: int,
    *,
    num_classes: int,
    shape: tuple[int, ...],
    device: torch.device,
) -> MethodSettings:
    """The settings with `auto` kernels replaced by the faster. Raises InputError if `own` ones cannot be used."""
    _refuse_contradictions(method, s)
    if method.double_backward or s.reproducible or s.kernels == "torch":
        return replace(s, kernels="torch")
    shape = net_shape(shape, s)
    net = _build(s, 0, num_classes=num_classes, shape=shape, device=device)
    is_long = _is_long(net, s, method.num_nets(s), shape, num_samples)  # only then measurements earn their time back
    keep_freed_memory()  # as in training
    choice = choose_kernels(s.kernels, net, shape, s.batch_size, worth_measuring=is_long)
    return replace(s, kernels=choice.kernels)


def start(
    method: str,
    s: MethodSettings,
    sets: TrainingSets,
    *,
    num_classes: int,
    shape: tuple[int, ...],
    device: torch.device,
    to_train: bool = True,
    first_weights: FirstWeights | None = None,
) -> State:
    """The state of a method before its first epoch on the sets, whose samples have `shape`.

    `first_weights` may change the weights of the nets before the method copies them, for an average or a restart.
    Kernels that are still `auto` are torch's. Raises InputError if the method is unknown, lacks trusted samples, or the
    net does not fit.
    """
    found, shape = find_method(method), net_shape(shape, s)
    _refuse_contradictions(found, s)
    nets = [_build(s, k, num_classes=num_classes, shape=shape, device=device) for k in range(found.num_nets(s))]
    if to_train and s.kernels == "own":
        choose_kernels("own", nets[0], shape, s.batch_size)  # raises if they cannot be used
        for net in nets:
            use_own_kernels(net)
    is_long = (
        s.compile == "auto" and not s.reproducible and _is_long(nets[0], s, len(nets), shape, len(sets.train.labels))
    )
    if to_train and not found.double_backward and not s.sync_batchnorm and (s.compile == "always" or is_long):
        for net in nets:
            compile_net(net)
    if to_train and (processes.num_joined() > 1 or s.sync_batchnorm):  # one process computes as several would
        for net in nets:
            share_net(net, sync_batchnorm=s.sync_batchnorm)
    if first_weights is not None:
        first_weights(nets, shape)
    state = State.start(nets, s, scale_loss=choose_dtype(s.precision, device) == torch.float16)
    loop.start(found, state, sets, s)
    return state


def net_shape(shape: tuple[int, ...], s: MethodSettings) -> tuple[int, ...]:
    """The shape that a net gets: that of cropped images, or of vectors as they are."""
    return cropped_shape(shape, s.crop_size) if len(shape) == 3 else shape


def _require_reproducible(s: MethodSettings, device: torch.device) -> None:
    """Raise InputError unless this process computes the same bits as every other reproducible one."""
    for name in ("compile", "kernels"):  # code that a compiler makes for this processor
        if getattr(s, name) in ("always", "own"):
            raise InputError(f"{name} is {getattr(s, name)}: it cannot be used with reproducible; leave it out")
    if device.type != "cpu":
        raise InputError(f"device is {device}: reproducible runs are trained on a CPU; set device to cpu")
    require_limited(torch.backends.cpu.get_cpu_capability())


def _build(s: MethodSettings, k: int, *, num_classes: int, shape: tuple[int, ...], device: torch.device) -> nn.Module:
    """Net k on its device, in its precision; each k and seed has other weights, unless it is a copy of a module."""
    net = build_net(s, num_classes=num_classes, image_shape=shape, seed=2 * s.seed + k).to(device)
    net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    dtype = choose_dtype(s.precision, device)
    if dtype != torch.float32:
        autocast_net(net, device, dtype)
    return net


def _is_long(net: nn.Module, s: MethodSettings, num_nets: int, shape: tuple[int, ...], num_samples: int) -> bool:
    """Whether the training is long enough for compilation and measurements to pay."""
    # A sample is forwarded about six times an epoch for each net, counting a backward as two. The first plan decides:
    # a resumed run must decide as before.
    num_rows = 6 * num_nets * s.num_divided(num_samples) * s.in_force(0).epochs
    return worth_compiling(net, shape, num_rows, next(net.parameters()).device)
