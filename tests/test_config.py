"""The configuration, field by field. Oracle: the table of types and ranges below, written down apart from the code."""

import dataclasses
import math
from typing import Any

import pytest

from dividemix.config import Config, describe_range
from dividemix.errors import InputError

WHOLE = {  # field: smallest allowed
    "net_width": 1,
    "epochs": 1,
    "warmup_epochs": 1,
    "batch_size": 1,
    "lr_drop_epoch": 1,
    "loss_window": 1,
    "num_views": 1,
    "rampup_epochs": 0,
    "crop_padding": 0,
    "crop_size": 0,
    "balanced_batches": 0,
    "seed": 0,
}
ABOVE_ZERO = ("lr", "temperature", "alpha")
FROM_ZERO = ("weight_decay", "lambda_u", "lambda_r")
ZERO_TO_ONE = ("momentum", "clean_threshold", "keep_all_up_to")
NUMBERS = ABOVE_ZERO + FROM_ZERO + ZERO_TO_ONE
SWITCHES = (
    "final_norm",
    "co_training",
    "confidence_penalty",
    "keep_plausible",
    "refine_labels",
    "mixup_per_sample",
    "norm_per_view",
    "lambda_u_auto",
    "labeled_only",
    "flip",
)
CHOICES = {
    "lr_schedule": {"step", "cosine"},
    "mixture": {"gaussian", "beta"},
    "division": {"global", "per_class"},
    "precision": {"auto", "float32", "bfloat16", "float16"},
    "compile": {"auto", "always", "never"},
}
TEXTS = ("net", "device")
FIELDS = {field.name: field for field in dataclasses.fields(Config)}


def refused(**fields: Any) -> str:
    """The one line with which the fields are refused."""
    with pytest.raises(InputError) as refusal:
        Config(**fields)
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


def assert_refused(name: str, value: Any) -> None:
    """Refused with a line that names the field and shows the value."""
    line = refused(**{name: value})
    assert line.startswith(f"{name} is ")
    assert str(value) in line


def test_the_tables_cover_every_field() -> None:
    assert {*WHOLE, *NUMBERS, *SWITCHES, *CHOICES, *TEXTS} == FIELDS.keys()


def test_every_field_has_a_help_text() -> None:
    for field in FIELDS.values():
        assert field.metadata["doc"].strip()
        assert "\n" not in field.metadata["doc"]


def test_it_is_frozen_and_keyword_only() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Config().lr = 1.0  # type: ignore[misc]
    with pytest.raises(TypeError):
        Config("small_cnn")  # type: ignore[misc]


@pytest.mark.parametrize(("name", "low"), WHOLE.items())
def test_whole_numbers(name: str, low: int) -> None:
    # Warm-up must fit into the epochs, so those two go together.
    around = {"warmup_epochs": {"epochs": 10**9}, "epochs": {"warmup_epochs": 1}}.get(name, {})
    for value in (low, low + 1, 10**6):
        assert getattr(Config(**{name: value, **around}), name) == value
    for value in (low - 1, -(10**9), 1.0, 2.5, True, "1", None, [1], math.nan, math.inf):
        assert_refused(name, value)


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name: str) -> None:
    for value in (0.3, 1e-12, 1.0):
        assert getattr(Config(**{name: value}), name) == value
    for value in (-1e-12, -1, -0.5, math.nan, math.inf, -math.inf, True, "0.5", None, (0.5,)):
        assert_refused(name, value)


@pytest.mark.parametrize("name", NUMBERS)
def test_a_whole_number_serves_as_a_number(name: str) -> None:
    value = getattr(Config(**{name: 1}), name)
    assert value == 1.0
    assert type(value) is float


@pytest.mark.parametrize("name", ABOVE_ZERO)
def test_zero_is_too_small(name: str) -> None:
    for value in (0, 0.0):
        assert "above 0" in refused(**{name: value})


@pytest.mark.parametrize("name", FROM_ZERO + ZERO_TO_ONE)
def test_zero_is_allowed(name: str) -> None:
    assert getattr(Config(**{name: 0.0}), name) == 0.0


@pytest.mark.parametrize("name", ZERO_TO_ONE)
def test_more_than_one_is_too_large(name: str) -> None:
    assert "from 0 to 1" in refused(**{name: 1.0000001})


@pytest.mark.parametrize("name", ABOVE_ZERO + FROM_ZERO)
def test_others_may_be_large(name: str) -> None:
    assert getattr(Config(**{name: 1e6}), name) == 1e6


@pytest.mark.parametrize("name", ["epochs", "lr"])
def test_numbers_beyond_any_float_are_refused_too(name: str) -> None:
    line = refused(**{name: 10**400})
    assert line.startswith(f"{name} is ")


@pytest.mark.parametrize("name", SWITCHES)
def test_switches(name: str) -> None:
    for value in (True, False):
        assert getattr(Config(**{name: value, "lambda_u": 0.0}), name) is value
    for value in (0, 1, "true", None, 1.0):
        assert_refused(name, value)
        assert "true or false" in refused(**{name: value})


@pytest.mark.parametrize(("name", "choices"), CHOICES.items())
def test_choices(name: str, choices: set[str]) -> None:
    for value in choices:
        assert getattr(Config(**{name: value}), name) == value
    for value in ("", "other", None, 1):
        assert_refused(name, value)
    assert all(choice in refused(**{name: "other"}) for choice in choices)
    assert all(choice in describe_range(FIELDS[name]) for choice in choices)


@pytest.mark.parametrize("name", TEXTS)
def test_texts(name: str) -> None:
    assert getattr(Config(**{name: "anything"}), name) == "anything"
    for value in (1, None, True, b"cpu"):
        assert_refused(name, value)


def test_seeds_fit_into_63_bits() -> None:
    assert Config(seed=2**63 - 1).seed == 2**63 - 1
    assert_refused("seed", 2**63)


def test_warm_up_must_fit_into_the_epochs() -> None:
    assert Config(epochs=5, warmup_epochs=5).warmup_epochs == 5
    line = refused(epochs=5, warmup_epochs=6)
    assert "warmup_epochs is 6" in line
    assert "epochs (5)" in line


def test_labeled_only_needs_lambda_u_zero() -> None:
    assert Config(labeled_only=True, lambda_u=0.0).labeled_only
    assert Config(labeled_only=True, lambda_u=25.0, lambda_u_auto=True).labeled_only  # it may come down to 0
    line = refused(labeled_only=True, lambda_u=25.0)
    assert "labeled_only" in line
    assert "--lambda_u 0" in line


def test_the_ablations_are_off_unless_asked_for() -> None:
    """The defaults are the paper's whole method."""
    config = Config()
    assert (config.co_training, config.refine_labels, config.mixture) == (True, True, "gaussian")
    assert not config.lambda_u_auto
    assert not config.keep_plausible
    assert config.keep_all_up_to == 0.0


def test_replace_checks_again() -> None:
    assert dataclasses.replace(Config(), lr=1).lr == 1.0
    with pytest.raises(InputError, match="lr is -1"):
        dataclasses.replace(Config(), lr=-1)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("epochs", "a whole number from 1"),
        ("crop_padding", "a whole number from 0"),
        ("lr", "a number above 0"),
        ("clean_threshold", "a number from 0 to 1"),
        ("flip", "true or false"),
        ("net", "text"),
    ],
)
def test_ranges_in_words(name: str, words: str) -> None:
    assert describe_range(FIELDS[name]) == words
