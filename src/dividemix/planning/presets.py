"""The paper's hyper-parameter tables as data, each row citing where it stands; no torch import."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dividemix.config import Config
from dividemix.errors import InputError


@dataclass(frozen=True)
class Preset:
    """Fields that differ from Config's defaults (the paper's CIFAR setting), and where they come from."""

    origin: str
    fields: Mapping[str, Any]


def preset_fields(name: str) -> dict[str, Any]:
    """The fields that the preset sets.

    Raises:
        InputError: if there is no such preset; the message lists those that there are.
    """
    if name not in PRESETS:
        raise InputError(f"unknown preset {name!r}: known are {', '.join(PRESETS)}")
    return dict(PRESETS[name].fields)


def preset_config(name: str, **overrides: Any) -> Config:
    """The configuration of a preset, with some fields set otherwise."""
    return Config(**{**preset_fields(name), **overrides})


def preset_for(data: str, noise: str) -> str:
    """The preset of data that is given without one; for CIFAR the row of Table 7 with its noise, else that of 50 %."""
    if data in ("cifar10", "cifar100"):
        name = f"{data}-{_TABLE_7.get(noise)}"
        return name if name in PRESETS else f"{data}-sym-50"
    return data if data in ("fashion", "clothing1m", "webvision") else "default"


_TABLE_7 = {f"symmetric:{rate / 100:g}": f"sym-{rate}" for rate in (20, 50, 80, 90)} | {"asymmetric:0.4": "asym-40"}

_CIFAR10: dict[str, Any] = {"warmup_epochs": 10}
_CIFAR100: dict[str, Any] = {"warmup_epochs": 30}
# 90 % noise: the text has tau 0.6 (Section 4.1), the released code also averages the losses of five epochs.
_NINETY: dict[str, Any] = {"clean_threshold": 0.6, "loss_window": 5}
_WEB: dict[str, Any] = {
    "warmup_epochs": 1,
    "batch_size": 32,
    "weight_decay": 1e-3,
    "alpha": 0.5,
    "lambda_u": 0.0,
    "labeled_only": True,
    "crop_padding": 0,
}

PRESETS: dict[str, Preset] = {
    "default": Preset(
        "LOG.md, data of one's own: these, and what runs/defaults.py chooses to fit the data",
        {
            "warmup_epochs": 1,  # at least; chosen with the schedule
            "confidence_penalty": True,
            "loss_window": 5,
            "clean_threshold": 0.15,
            "keep_plausible": True,
            "alpha": 0.5,
            "norm_per_view": False,
            "keep_all_up_to": 0.125,
            "lambda_u_auto": True,
            "labeled_only": True,
            "lr_schedule": "cosine",
        },
    ),
    "cifar10-sym-20": Preset("Table 7, CIFAR-10 20 %", _CIFAR10 | {"lambda_u": 0.0}),
    "cifar10-sym-50": Preset("Table 7, CIFAR-10 50 %", _CIFAR10 | {"lambda_u": 25.0}),
    "cifar10-sym-80": Preset("Table 7, CIFAR-10 80 %", _CIFAR10 | {"lambda_u": 25.0}),
    "cifar10-sym-90": Preset("Table 7, CIFAR-10 90 %", _CIFAR10 | {"lambda_u": 50.0} | _NINETY),
    "cifar10-asym-40": Preset(
        "Table 7, CIFAR-10 asymmetric 40 %", _CIFAR10 | {"lambda_u": 0.0, "confidence_penalty": True}
    ),
    "cifar100-sym-20": Preset("Table 7, CIFAR-100 20 %", _CIFAR100 | {"lambda_u": 25.0}),
    "cifar100-sym-50": Preset("Table 7, CIFAR-100 50 %", _CIFAR100 | {"lambda_u": 150.0}),
    "cifar100-sym-80": Preset("Table 7, CIFAR-100 80 %", _CIFAR100 | {"lambda_u": 150.0}),
    "cifar100-sym-90": Preset("Table 7, CIFAR-100 90 %", _CIFAR100 | {"lambda_u": 150.0} | _NINETY),
    "fashion": Preset(
        "LOG.md, the embedded set",
        {
            "net": "small_cnn",
            "net_width": 16,
            "epochs": 15,
            "warmup_epochs": 3,
            "batch_size": 32,
            "lr_drop_epoch": 15,
            "division": "per_class",
            "alpha": 0.5,
            "norm_per_view": False,
            "crop_padding": 2,
        },
    ),
    "clothing1m": Preset(
        "Appendix B, Clothing1M; crops as the released code has them",
        _WEB
        | {"net": "resnet50", "epochs": 80, "lr": 0.002, "lr_drop_epoch": 40, "confidence_penalty": True}
        | {"balanced_batches": 1000, "crop_size": 224},
    ),
    "webvision": Preset(
        "Appendix B, WebVision; crops as the released code had them when the paper came out",
        _WEB | {"net": "inception_resnet_v2", "epochs": 100, "lr": 0.01, "lr_drop_epoch": 50, "crop_size": 227},
    ),
}
