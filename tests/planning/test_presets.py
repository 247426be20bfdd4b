"""The presets, value by value, from the paper: Section 4.1, Appendix B, Table 7; exceptions as FIDELITY has them."""

from typing import Any

import pytest

from dividemix.errors import InputError
from dividemix.methods.dividemix import DivideMixSettings
from dividemix.methods.method import MethodSettings
from dividemix.methods.robust import RobustSettings
from dividemix.planning.presets import PRESETS, preset_for, preset_settings, preset_values

# Table 7: lambda_u.
TABLE_7 = {
    "cifar10-asym-40": 0,
    "cifar10-sym-20": 0,
    "cifar10-sym-50": 25,
    "cifar10-sym-80": 25,
    "cifar10-sym-90": 50,
    "cifar100-sym-20": 25,
    "cifar100-sym-50": 150,
    "cifar100-sym-80": 150,
    "cifar100-sym-90": 150,
}

# Section 4.1: SGD, momentum 0.9, weight decay 0.0005, batch size 128, 300 epochs, rate 0.02 divided by 10 after 150
# epochs; M = 2, T = 0.5, alpha = 4; lambda_r = 1 (Section 3.2). As in the released code, 128 is the warm-up's batch
# (2 B) and a step has 64 + 64; lambda_u grows over 16 epochs; crops come from images padded by 4.
CIFAR: dict[str, Any] = {
    "net": "preact_resnet18",
    "net_width": 64,
    "final_norm": False,
    "epochs": 300,
    "batch_size": 64,
    "lr": 0.02,
    "lr_schedule": "step",
    "lr_drop_epoch": 150,
    "momentum": 0.9,
    "weight_decay": 0.0005,
    "num_views": 2,
    "temperature": 0.5,
    "alpha": 4,
    "mixup_per_sample": False,
    "norm_per_view": True,
    "rampup_epochs": 16,
    "lambda_r": 1,
    "labeled_only": False,
    "crop_padding": 4,
    "flip": True,
}

# Appendix B: both web data sets.
WEB: dict[str, Any] = {
    "num_views": 2,
    "temperature": 0.5,
    "clean_threshold": 0.5,
    "lambda_u": 0,
    "alpha": 0.5,
    "momentum": 0.9,
    "weight_decay": 0.001,
    "batch_size": 32,
    "warmup_epochs": 1,
    "lr_schedule": "step",
    "labeled_only": True,
    "lambda_r": 1,
    "loss_window": 1,
}


def assert_fields(config: MethodSettings, expected: dict[str, Any]) -> None:
    assert {name: getattr(config, name) for name in expected} == expected


def of_the_paper(name: str) -> DivideMixSettings:
    """The settings of a preset whose method is the paper's, which has one mixture over all losses."""
    config = preset_settings(name)
    assert PRESETS[name].method == "dividemix"
    assert type(config) is DivideMixSettings
    assert not hasattr(config, "division")
    return config


def of_our_recipe(name: str) -> RobustSettings:
    """The settings of a preset whose method is ours."""
    config = preset_settings(name)
    assert PRESETS[name].method == "robust"
    assert isinstance(config, RobustSettings)
    return config


@pytest.mark.parametrize(("name", "lambda_u"), TABLE_7.items())
def test_cifar(name: str, lambda_u: float) -> None:
    config = of_the_paper(name)
    assert_fields(config, CIFAR)
    assert config.lambda_u == lambda_u
    # "The warm up period is 10 epochs for CIFAR-10 and 30 epochs for CIFAR-100."
    assert config.warmup_epochs == (30 if name.startswith("cifar100") else 10)
    # "tau is set as 0.5 except for 90 % noise ratio when it is set as 0.6"; the released code averages 5 epochs there.
    is_ninety = name.endswith("-90")
    assert config.clean_threshold == (0.6 if is_ninety else 0.5)
    assert config.loss_window == (5 if is_ninety else 1)
    # Section 3.1: the penalty is for asymmetric noise.
    assert config.confidence_penalty == ("asym" in name)


def test_clothing1m() -> None:
    """80 epochs, rate 0.002, divided by 10 after 40, ResNet-50; the released code penalises confidence."""
    config = of_the_paper("clothing1m")
    assert_fields(config, WEB)
    assert_fields(config, {"net": "resnet50", "epochs": 80, "lr": 0.002, "lr_drop_epoch": 40})
    assert config.confidence_penalty


def test_webvision() -> None:
    """100 epochs, rate 0.01, divided by 10 after 50, Inception-ResNet v2; no penalty in the released code."""
    config = of_the_paper("webvision")
    assert_fields(config, WEB)
    assert_fields(config, {"net": "inception_resnet_v2", "epochs": 100, "lr": 0.01, "lr_drop_epoch": 50})
    assert not config.confidence_penalty


def test_the_defaults_are_the_papers_cifar_setting() -> None:
    assert_fields(DivideMixSettings(), CIFAR | {"warmup_epochs": 10, "clean_threshold": 0.5, "lambda_u": 25})


def test_no_preset_is_missing_or_unknown_to_this_file() -> None:
    assert PRESETS.keys() == {*TABLE_7, "clothing1m", "webvision", "fashion", "default"}


@pytest.mark.parametrize("name", PRESETS)
def test_each_preset_says_where_it_comes_from(name: str) -> None:
    origin = PRESETS[name].origin
    if name in TABLE_7:
        data, kind, percent = name.split("-")
        assert "Table 7" in origin
        assert data.removeprefix("cifar") in origin.split()[2]
        assert f"{percent} %" in origin
        assert (kind == "asym") == ("asymmetric" in origin)
    else:
        assert origin
    preset_settings(name)  # its values are within their ranges


def test_fashion_fits_the_embedded_set() -> None:
    """A preset of ours: quick on two cores. LOG.md has what it reaches."""
    config = of_our_recipe("fashion")
    assert config.net == "small_cnn"
    assert config.warmup_epochs < config.epochs <= 30


def test_default_drops_a_label_only_for_one_that_is_far_more_plausible() -> None:
    """What LOG.md's figures of it were measured with."""
    config = of_our_recipe("default")
    assert (config.keep_plausible, config.clean_threshold, config.division) == (True, 0.15, "global")
    assert (config.keep_all_up_to, config.lambda_u_auto, config.loss_window) == (0.125, True, 5)
    assert (config.warmup_epochs, config.confidence_penalty, config.alpha) == (1, True, 0.5)
    assert (config.norm_per_view, config.labeled_only, config.lr_schedule) == (False, True, "cosine")


def test_no_preset_decides_about_seed_or_device() -> None:
    assert not [name for name, preset in PRESETS.items() if {"seed", "device"} & preset.fields.keys()]


def test_overrides_go_over_the_preset() -> None:
    config = preset_settings("cifar10-sym-90", lambda_u=1, epochs=20)
    assert isinstance(config, DivideMixSettings)
    assert (config.lambda_u, config.epochs, config.clean_threshold) == (1.0, 20, 0.6)
    with pytest.raises(InputError, match="lambda_u"):
        preset_settings("cifar10-sym-90", lambda_u=-1)


def test_fields_given_out_are_a_copy() -> None:
    preset_values("cifar10-sym-20")["lambda_u"] = 99.0
    assert of_the_paper("cifar10-sym-20").lambda_u == 0


def test_another_method_gets_the_settings_that_it_has() -> None:
    assert preset_values("cifar10-sym-50", "robust") == {"method": "robust", "warmup_epochs": 10, "lambda_u": 25.0}
    web = {"method": "cross_entropy", "batch_size": 32, "weight_decay": 0.001, "crop_padding": 0, "crop_size": 227}
    web |= {"net": "inception_resnet_v2", "epochs": 100, "lr": 0.01, "lr_drop_epoch": 50}
    assert preset_values("webvision", "cross_entropy") == web


def test_an_unknown_preset_lists_the_known_ones() -> None:
    with pytest.raises(InputError) as refusal:
        preset_settings("imagenet")
    line = str(refusal.value)
    assert "'imagenet'" in line
    assert "\n" not in line
    assert all(name in line for name in PRESETS)


def test_a_mistyped_preset_names_the_one_that_was_meant() -> None:
    with pytest.raises(InputError, match="unknown preset 'cifar10-sym-51': did you mean cifar10-sym-50"):
        preset_settings("cifar10-sym-51")


@pytest.mark.parametrize(
    ("data", "noise", "expected"),
    [
        ("cifar10", "symmetric:0.9", "cifar10-sym-90"),
        ("cifar10", "asymmetric:0.4", "cifar10-asym-40"),
        ("cifar100", "symmetric:0.2", "cifar100-sym-20"),
        ("cifar100", "asymmetric:0.4", "cifar100-sym-50"),  # Table 7 has no such row
        ("cifar10", "none", "cifar10-sym-50"),
        ("cifar100", "file:labels.json", "cifar100-sym-50"),
        ("fashion", "symmetric:0.9", "fashion"),
        ("clothing1m", "none", "clothing1m"),
        ("photos", "symmetric:0.5", "default"),
    ],
)
def test_data_without_a_preset_takes_that_of_its_noise(data: str, noise: str, expected: str) -> None:
    assert preset_for(data, noise) == expected
