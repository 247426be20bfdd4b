"""The preset `default`: settings that fit data about which nothing is known, each with the reason for it."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dividemix.data.assemble import LARGE
from dividemix.data.source import Source
from dividemix.engine.device import choose_device
from dividemix.errors import InputError
from dividemix.planning.choices import Choice
from dividemix.planning.job import Job
from dividemix.planning.material import read
from dividemix.planning.pace import measure

_LARGE = 96  # pixels of the shorter side above which an image is a photograph, not a thumbnail
_CPU_SIZE = 64  # pixels to which a CPU gets large images
_IMBALANCED = 3  # times as many samples in the largest class as in the smallest
_MIN_PER_CLASS = 30  # samples of the median class, before some are held out
_MIN_EPOCHS = 5
_MAX_EPOCHS = 300


def choose(
    job: Job, given: Mapping[str, Any], *, minutes: float | None = None, source: Source | None = None
) -> tuple[Source, list[Choice]]:
    """The job's data, and settings that fit it, apart from those `given`; with a schedule of so many minutes, if asked.

    Data that is there already comes as `source`.

    Raises:
        InputError: for whatever is wrong with the data, or when the time is too short.
    """
    device = choose_device(job.config.device)
    on_cpu = device.type == "cpu"
    given = {name: value for name, value in given.items() if value is not None}
    can_resize = source is None and job.image_size is None
    source = source or read(job, large_size=_CPU_SIZE if on_cpu and not job.weights else LARGE)
    is_large = min(source.median_size or source.train_images.shape[1:3]) > _LARGE
    choices = []
    if is_large and (job.weights or not on_cpu):
        choices += [Choice("net", "resnet50", "large images" + (", and weights to start from" if job.weights else ""))]
    elif on_cpu:
        if is_large and can_resize:
            if source.train_images.shape[1] != _CPU_SIZE:  # a built-in set, which has a size of its own
                source = read(replace(job, image_size=_CPU_SIZE))
            choices += [Choice("image_size", _CPU_SIZE, "a CPU; --weights FILE or a GPU gets 224 pixels and ResNet-50")]
        choices += [Choice("net", "small_cnn", "trains in minutes on a CPU"), _width(source)]
        if given.get("net", "small_cnn") == "small_cnn":
            choices += [Choice("lr", 0.04, "a small network and few epochs: twice the paper's rate")]
    else:
        choices += [Choice("net", "preact_resnet18", "small images")]
    choices = [choice for choice in choices + _by_samples(source) if choice.name not in given]
    if "epochs" not in given:
        settings = job.values() | {choice.name: choice.value for choice in choices}
        choices.append(
            _epochs(len(source.train_labels), on_cpu)
            if minutes is None
            else _epochs_in(minutes, Job.of(settings), source, given.get("warmup_epochs"))
        )
    epochs = next((choice.value for choice in choices if choice.name == "epochs"), job.config.epochs)
    warmup = _warmup(epochs, on_cpu)
    rampup = Choice("rampup_epochs", max(1, min(16, epochs - warmup.value)), "until lambda_u is in full force")
    return source, choices + [choice for choice in (warmup, rampup) if choice.name not in given]


def _width(source: Source) -> Choice:
    is_grey = source.train_images.shape[3] == 1
    return Choice("net_width", 16 if is_grey else 32, "grey images" if is_grey else "colour images")


def _by_samples(source: Source) -> list[Choice]:
    """What follows from the images' size, their number, and how the classes share them."""
    side, num_samples = min(source.train_images.shape[1:3]), len(source.train_labels)
    counts = np.bincount(source.train_labels, minlength=len(source.classes))
    choices = [
        Choice("crop_padding", max(1, round(side / 12)), f"a twelfth of the images' {side} pixels"),
        Choice(
            "batch_size",
            _batch_size(num_samples),
            f"64 from 20,000 samples on, less for {num_samples:,}"
            if num_samples < 20_000
            else "20,000 samples or more",
        ),
    ]
    if counts.max() > _IMBALANCED * max(counts.min(), 1):
        reason = "the regulariser asks for all classes equally often, and here they differ"
        choices.append(Choice("lambda_r", 0.0, f"{reason}: {counts.min():,} to {counts.max():,} samples"))
    if source.val_images is not None:
        choices.append(Choice("holdout", 0.0, "the data has validation images of its own"))
    elif np.median(counts[counts > 0]) >= _MIN_PER_CLASS:
        choices.append(
            Choice("holdout", 0.1, "samples held out, with labels as noisy as all, choose the epoch to keep")
        )
    else:
        choices.append(Choice("holdout", 0.0, f"most classes have fewer than {_MIN_PER_CLASS} samples: none to spare"))
    return choices


def _batch_size(num_samples: int) -> int:
    """Enough steps in an epoch for small data, steps as large as the paper's for large data."""
    if num_samples >= 20_000:
        return 64
    return max(4, min(32, 1 << int(math.log2(max(num_samples, 2) / 8 + 1))))


def _epochs(num_samples: int, on_cpu: bool) -> Choice:
    """As many as show the nets a certain number of images, within bounds."""
    wanted, low, high = (100_000, 15, 40) if on_cpu else (15_000_000, 60, 300)
    epochs = max(low, min(round(wanted / num_samples), high))
    return Choice("epochs", epochs, f"the fewer samples, the more epochs: {num_samples:,} samples")


def _warmup(epochs: int, on_cpu: bool) -> Choice:
    most = 5 if on_cpu else 10
    return Choice("warmup_epochs", max(1, min(round(epochs / 6), most)), f"a sixth of the epochs, {most} at most")


def _epochs_in(minutes: float, job: Job, source: Source, num_warmup: int | None) -> Choice:
    """How many epochs take so long on this machine, by timing a few steps of both phases; num_warmup if it is given."""
    if not minutes > 0 or not math.isfinite(minutes):
        raise InputError(f"minutes is {minutes:g}: a number above 0 is needed")
    pace = measure(replace(job, noise="none"), source)
    on_cpu = choose_device(job.config.device).type == "cpu"

    def seconds(epochs: int) -> float:
        warmup = _warmup(epochs, on_cpu).value if num_warmup is None else num_warmup
        schedule = replace(job.config, epochs=epochs, warmup_epochs=warmup)
        return pace.seconds(replace(job, config=schedule))

    fewest = max(_MIN_EPOCHS, num_warmup or 0)
    fitting = [epochs for epochs in range(fewest, _MAX_EPOCHS + 1) if seconds(epochs) <= 60 * minutes]
    if not fitting:
        needed = math.ceil(seconds(fewest) / 60)
        raise InputError(
            f"minutes is {minutes:g}: {fewest} epochs take about {needed} minutes here; allow them, or take a"
            " smaller --net_width or --image_size"
        )
    an_epoch = seconds(fitting[-1]) / fitting[-1]
    return Choice("epochs", fitting[-1], f"fit {minutes:g} minutes: an epoch takes about {an_epoch:.2g} s here")
