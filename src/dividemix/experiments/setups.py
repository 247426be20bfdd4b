"""What the columns and rows of the paper's tables train, at full scale and at mini scale, as jobs. No torch import."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dividemix.data.builtin import BUILT_IN
from dividemix.errors import counted
from dividemix.planning.job import Job, known_to, own_fields
from dividemix.planning.plan import make_draft
from dividemix.planning.presets import find_preset, preset_settings, shared


@dataclass(frozen=True)
class Setup:
    """Data, the noise that is added to it, and the preset with the paper's numbers for the two."""

    data: str
    noise: str
    preset: str


def make_job(setup: Setup, scale: str, given: Mapping[str, Any], published: Mapping[str, Any] | None = None) -> Job:
    """The setup as a job: its preset, then the published settings of the method, then those given.

    At paper scale it computes in float32. At mini scale data, network and schedule are smaller: of the published
    settings those remain that are the method's own and no rates, which are tuned to one length of training. The data is
    CIFAR-10 if a root is given, else the embedded set.
    """
    preset, published = find_preset(setup.preset), published or {}
    method = given.get("method", preset.method)
    settings: dict[str, Any] = {"data": setup.data, "noise": setup.noise}
    # All values, not only those of the preset: the planner scales no length.
    settings |= shared(dataclasses.asdict(preset_settings(setup.preset)), preset.method, method)
    if scale == "mini":
        settings |= {name: published[name] for name in own_fields(method).keys() & published.keys() - _RATES}
        settings |= _MINI_FASHION if given.get("root") is None else _MINI_CIFAR10
    else:
        settings |= {"precision": "float32", **published}
    return make_draft(known_to(method, settings | dict(given)), preset=setup.preset).job


def describe(job: Job) -> str:
    """The size of a job in words, for titles."""
    images = DATA_NAMES.get(job.data, job.data)
    if job.limit_train:
        images = f"{job.limit_train:,} images of {images}"
    return f"{images}, {job.settings.net_words}, {counted(job.settings.epochs, 'epoch')}"


_RATES = {"final_lr", "label_lr"}  # without a value the method fits them to its learning rate and its epochs
DATA_NAMES = {name: built_in.title for name, built_in in BUILT_IN.items()}

# For two cores: at most a tenth of the images, a small net, at most a fifth of the epochs.
# The algorithm and its parameters for each noise are the paper's.
_MINI: dict[str, Any] = {"net": "small_cnn", "net_width": 16, "batch_size": 32}
_MINI_FASHION: dict[str, Any] = _MINI | {
    "data": "fashion",
    "limit_train": 3000,
    "epochs": 15,
    "warmup_epochs": 3,
    "rampup_epochs": 8,
    "lr_drop_epoch": 15,  # never
    "crop_padding": 2,  # of 28 pixels
}
_MINI_CIFAR10: dict[str, Any] = _MINI | {
    "limit_train": 5000,
    "epochs": 54,
    "rampup_epochs": 16,
    "warmup_epochs": 24,  # half of the paper's steps; after 6 epochs the nets guess too poorly at 80 %
    "lr_drop_epoch": 44,  # so that the ten epochs of "last" come after it, as they do in the paper
}


def _symmetric(noise: str, rates: tuple[int, ...]) -> dict[str, Setup]:
    """Both CIFAR sets with noise of each rate (%). Table 7 has no lambda_u for 40 and 60 %: that of 50 % is used."""
    return {
        f"{DATA_NAMES[data]} sym. {rate} %": Setup(
            data, f"{noise}:{rate / 100:g}", f"{data}-sym-{50 if rate in (40, 60) else rate}"
        )
        for data in ("cifar10", "cifar100")
        for rate in rates
    }


SYMMETRIC = _symmetric("symmetric", (20, 50, 80, 90))
ASYMMETRIC = Setup("cifar10", "asymmetric:0.4", "cifar10-asym-40")
CLOTHING1M = Setup("clothing1m", "none", "clothing1m")
_WEBVISION = Setup("webvision", "none", "webvision")
_HALF = SYMMETRIC["CIFAR-10 sym. 50 %"]  # where the paper does not say which noise

# What is trained for the columns of each table.
COLUMNS: dict[str, dict[str, Setup]] = {
    "table1": SYMMETRIC,
    "table2": {"CIFAR-10 asym. 40 %": ASYMMETRIC},
    "table3": {"Clothing1M": CLOTHING1M},
    "table4": {"WebVision": _WEBVISION, "ILSVRC12": _WEBVISION},
    "table5": SYMMETRIC | {"CIFAR-10 asym. 40 %": ASYMMETRIC},
    "table6": _symmetric("symmetric_other", (20, 40, 60, 80)),
    "table8": {"training": _HALF},
    "table9": dict.fromkeys(("Co-Divide", "Data MixMatch", "Forward-Backward"), _HALF),
}
