"""What the columns and rows of the paper's tables train, at full scale and at mini scale, as jobs; no torch import."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dividemix.planning.job import Job
from dividemix.planning.presets import preset_fields


@dataclass(frozen=True)
class Setup:
    """Data, the noise put on it, and the preset that has the paper's numbers for the two."""

    data: str
    noise: str
    preset: str


def make_job(
    setup: Setup,
    scale: str,
    *,
    seed: int,
    root: str | None,
    weights: str | None = None,
    changes: Mapping[str, Any] | None = None,
) -> Job:
    """The setup as a job: at paper scale its preset in float32, at mini scale the same preset laid under a small one.

    At mini scale the data is CIFAR-10's where there is a root, and the embedded set's where there is none.
    """
    settings: dict[str, Any] = {"data": setup.data, "root": root, "weights": weights, "noise": setup.noise}
    settings |= preset_fields(setup.preset)
    if scale == "mini":
        settings |= _MINI_FASHION if root is None else _MINI_CIFAR10
    else:
        settings["precision"] = "float32"
    return Job.of(settings | dict(changes or {}) | {"seed": seed})


def describe(job: Job) -> str:
    """The size of a job in words, for titles."""
    config = job.config
    images = DATA_NAMES.get(job.data, job.data)
    if job.limit_train:
        images = f"{job.limit_train:,} images of {images}"
    return f"{images}, {config.net_words}, {config.epochs} epochs"


DATA_NAMES = {
    "fashion": "the embedded Fashion-MNIST set",
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "clothing1m": "Clothing1M",
    "webvision": "WebVision, first 50 classes",
}

# For two cores: a tenth of the images and fewer, a small net, a fifth of the epochs and fewer.
# The algorithm and its parameters for each noise stay the paper's.
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
    "warmup_epochs": 24,  # half the steps of the paper's; after 6 epochs the nets guess too poorly at 80 %
    "lr_drop_epoch": 44,  # so that the ten epochs of "last" come after it, as they do in the paper
}


def _symmetric(rate: int, data: str = "cifar10") -> Setup:
    return Setup(data, f"symmetric:{rate / 100:g}", f"{data}-sym-{rate}")


def _symmetric_other(rate: int, data: str = "cifar10") -> Setup:
    """Noise of Table 6; Table 7 has no lambda_u for its rates of 40 and 60 %, so theirs is that of 50 %."""
    return Setup(data, f"symmetric_other:{rate / 100:g}", f"{data}-sym-{50 if rate in (40, 60) else rate}")


ASYMMETRIC = Setup("cifar10", "asymmetric:0.4", "cifar10-asym-40")
CLOTHING1M = Setup("clothing1m", "none", "clothing1m")
WEBVISION = Setup("webvision", "none", "webvision")
HALF = _symmetric(50)  # where the paper does not say which noise
RATES = (20, 50, 80, 90)
SYMMETRIC = {f"CIFAR-10 sym. {rate} %": _symmetric(rate) for rate in RATES}
_SYMMETRIC100 = {f"CIFAR-100 sym. {rate} %": _symmetric(rate, "cifar100") for rate in RATES}

# The columns of each table by what is trained for them.
COLUMNS: dict[str, dict[str, Setup]] = {
    "table1": SYMMETRIC | _SYMMETRIC100,
    "table2": {"CIFAR-10 asym. 40 %": ASYMMETRIC},
    "table3": {"Clothing1M": CLOTHING1M},
    "table4": {"WebVision": WEBVISION, "ILSVRC12": WEBVISION},
    "table5": SYMMETRIC | {"CIFAR-10 asym. 40 %": ASYMMETRIC} | _SYMMETRIC100,
    "table6": {f"CIFAR-10 sym. {rate} %": _symmetric_other(rate) for rate in (20, 40, 60, 80)}
    | {f"CIFAR-100 sym. {rate} %": _symmetric_other(rate, "cifar100") for rate in (20, 40, 60, 80)},
    "table8": {"training": HALF},
    "table9": dict.fromkeys(("Co-Divide", "Data MixMatch", "Forward-Backward"), HALF),
}

# The rows that the package can train, by what they change; every other row is not run.
METHOD_CHANGES: dict[str, dict[str, Any]] = {
    "Cross-Entropy": {"method": "cross_entropy", "confidence_penalty": False},
    "DivideMix": {},
    "DivideMix with theta(1) test": {},  # the same training, tested with one net
    "DivideMix w/o co-training": {"co_training": False},
    "DivideMix w/o label refinement": {"refine_labels": False},
    "DivideMix w/o augmentation": {"num_views": 1},
    "Divide and MixMatch": {"co_training": False, "refine_labels": False},
}
