"""The settings, field by field. Oracle: the table of types and ranges below, written down apart from the code."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from dividemix.errors import InputError
from dividemix.methods.dividemix import DivideMixSettings
from dividemix.methods.method import MethodSettings
from dividemix.methods.robust import RobustSettings
from dividemix.settings import REQUIRED, Field, Settings, fields_of, refuse_unknown, setting

INTEGERS = {  # field: smallest allowed
    "net_width": 1,
    "epochs": 1,
    "warmup_epochs": 1,
    "batch_size": 1,
    "lr_drop_epoch": 1,
    "lr_second_drop": 0,
    "loss_window": 1,
    "num_views": 1,
    "rampup_epochs": 0,
    "crop_padding": 0,
    "head_epochs": 0,
    "crop_size": 0,
    "cutout": 0,
    "balanced_batches": 0,
    "seed": 0,
}
HIGHEST = {"num_views": 1000}  # the highest allowed integer, where there is one
ABOVE_ZERO = ("lr", "temperature", "alpha")
FROM_ZERO = ("weight_decay", "lambda_u", "lambda_r", "noise_std")
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
    "reproducible",
    "sync_batchnorm",
)
CHOICES = {
    "lr_schedule": {"step", "cosine"},
    "mixture": {"gaussian", "beta"},
    "division": {"global", "per_class"},
    "precision": {"auto", "float32", "bfloat16", "float16"},
    "compile": {"auto", "always", "never"},
    "kernels": {"auto", "torch", "own"},
    "crop_border": {"black", "reflected"},
}
TEXTS = ("net", "device", "earlier_plans")
FREE_TEXTS = TEXTS[:2]  # the other one has a form (tests/engine/test_earlier_plans.py)
OF_ROBUST = {"keep_plausible", "keep_all_up_to", "lambda_u_auto", "division"}  # the others are those of DivideMix
FIELDS = fields_of(RobustSettings)


def made(**fields: Any) -> DivideMixSettings:
    """Settings with these values, of the method that has them."""
    return (RobustSettings if fields.keys() & OF_ROBUST else DivideMixSettings)(**fields)


def refused(**fields: Any) -> str:
    """The one line that refuses the values."""
    with pytest.raises(InputError) as refusal:
        made(**fields)
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


def assert_refused(name: str, value: Any) -> None:
    """Refused with a line that names the field and shows the value."""
    line = refused(**{name: value})
    assert line.startswith(f"{name} is ")
    assert str(value) in line


def test_the_tables_cover_every_field() -> None:
    assert {*INTEGERS, *NUMBERS, *SWITCHES, *CHOICES, *TEXTS} == FIELDS.keys()
    assert FIELDS.keys() - OF_ROBUST == fields_of(DivideMixSettings).keys()
    for name, field in FIELDS.items():
        kind = int if name in INTEGERS else float if name in NUMBERS else bool if name in SWITCHES else str
        assert (field.name, field.kind, field.optional) == (name, kind, False)
        assert set(field.words) == CHOICES.get(name, set())


def test_every_field_has_a_help_text() -> None:
    for field in FIELDS.values():
        assert field.doc.strip()
        assert "\n" not in field.doc


def test_it_is_frozen_and_keyword_only() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        DivideMixSettings().lr = 1.0  # type: ignore[misc]
    with pytest.raises(TypeError):
        DivideMixSettings("small_cnn")  # type: ignore[call-arg]


@pytest.mark.parametrize(("name", "low"), INTEGERS.items())
def test_integers(name: str, low: int) -> None:
    # Warm-up must fit into the epochs, so those two go together.
    around = {"warmup_epochs": {"epochs": 10**9}, "epochs": {"warmup_epochs": 1}}.get(name, {})
    high = HIGHEST.get(name, 10**6)
    for value in (low, low + 1, high):
        assert getattr(made(**{name: value, **around}), name) == value
    if name in HIGHEST:
        assert_refused(name, high + 1)
    for bad in (low - 1, -(10**9), 1.0, 2.5, True, "1", None, [1], math.nan, math.inf):
        assert_refused(name, bad)


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name: str) -> None:
    for value in (0.3, 1e-12, 1.0):
        assert getattr(made(**{name: value}), name) == value
    for bad in (-1e-12, -1, -0.5, math.nan, math.inf, -math.inf, True, "0.5", None, (0.5,)):
        assert_refused(name, bad)


@pytest.mark.parametrize("name", NUMBERS)
def test_an_integer_serves_as_a_number(name: str) -> None:
    value = getattr(made(**{name: 1}), name)
    assert value == 1.0
    assert type(value) is float


@pytest.mark.parametrize("name", ABOVE_ZERO)
def test_zero_is_too_small(name: str) -> None:
    for value in (0, 0.0):
        assert "must be a number > 0" in refused(**{name: value})


@pytest.mark.parametrize("name", FROM_ZERO + ZERO_TO_ONE)
def test_zero_is_allowed(name: str) -> None:
    assert getattr(made(**{name: 0.0}), name) == 0.0


@pytest.mark.parametrize("name", ZERO_TO_ONE)
def test_more_than_one_is_too_large(name: str) -> None:
    assert "must be a number >= 0 and <= 1" in refused(**{name: 1.0000001})


@pytest.mark.parametrize("name", ABOVE_ZERO + FROM_ZERO)
def test_others_may_be_large(name: str) -> None:
    assert getattr(made(**{name: 1e6}), name) == 1e6


@pytest.mark.parametrize("value", [1e30, 1e300, math.inf])
@pytest.mark.parametrize("name", ABOVE_ZERO + FROM_ZERO)
def test_what_a_float32_cannot_hold_is_too_large(name: str, value: float) -> None:
    """The laboratory found it: a traceback of torch, "value cannot be converted to type float without overflow"."""
    assert getattr(made(**{name: 9e29}), name) == 9e29
    assert refused(**{name: value}).endswith(" 0, less than 1e+30")


@pytest.mark.parametrize("name", ["epochs", "lr"])
def test_numbers_beyond_any_float_are_refused_too(name: str) -> None:
    line = refused(**{name: 10**400})
    assert line.startswith(f"{name} is ")


@pytest.mark.parametrize("name", SWITCHES)
def test_switches(name: str) -> None:
    for value in (True, False):
        assert getattr(made(**{name: value, "lambda_u": 0.0}), name) is value
    for bad in (0, 1, "true", None, 1.0):
        assert_refused(name, bad)
        assert "true or false" in refused(**{name: bad})


@pytest.mark.parametrize(("name", "choices"), CHOICES.items())
def test_choices(name: str, choices: set[str]) -> None:
    for value in choices:
        assert getattr(made(**{name: value}), name) == value
    for bad in ("", "other", None, 1):
        assert_refused(name, bad)
    assert all(choice in refused(**{name: "other"}) for choice in choices)
    assert all(choice in FIELDS[name].allowed for choice in choices)


@pytest.mark.parametrize("name", FREE_TEXTS)
def test_texts(name: str) -> None:
    assert getattr(made(**{name: "anything"}), name) == "anything"
    for value in (1, None, True, b"cpu"):
        assert_refused(name, value)


def test_seeds_fit_into_63_bits() -> None:
    assert DivideMixSettings(seed=2**63 - 1).seed == 2**63 - 1
    assert_refused("seed", 2**63)


def test_warm_up_must_fit_into_the_epochs() -> None:
    assert DivideMixSettings(epochs=5, warmup_epochs=5).warmup_epochs == 5
    line = refused(epochs=5, warmup_epochs=6)
    assert "warmup_epochs is 6" in line
    assert "epochs (5)" in line


def test_labeled_only_needs_lambda_u_zero() -> None:
    assert DivideMixSettings(labeled_only=True, lambda_u=0.0).labeled_only
    line = refused(labeled_only=True, lambda_u=25.0)
    assert "labeled_only" in line
    assert "set lambda_u to 0" in line


def test_a_single_image_in_a_batch_is_refused() -> None:
    assert DivideMixSettings(batch_size=1, num_views=2).batch_size == 1
    assert "batch_size 1 with num_views 1" in refused(batch_size=1, num_views=1)


def test_the_ablations_are_off_unless_asked_for() -> None:
    """The defaults are the paper's whole method, and it has none of the settings of `robust`."""
    s = DivideMixSettings()
    assert (s.co_training, s.refine_labels, s.mixture) == (True, True, "gaussian")
    assert not fields_of(DivideMixSettings).keys() & OF_ROBUST


def test_replace_checks_again() -> None:
    assert dataclasses.replace(DivideMixSettings(), lr=1).lr == 1.0
    with pytest.raises(InputError, match="lr is -1"):
        dataclasses.replace(DivideMixSettings(), lr=-1)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("epochs", "an integer >= 1"),
        ("crop_padding", "an integer >= 0"),
        ("lr", "a number > 0"),
        ("clean_threshold", "a number >= 0 and <= 1"),
        ("flip", "true or false"),
        ("net", "text"),
        ("lr_schedule", "one of step, cosine"),
    ],
)
def test_ranges_in_words(name: str, words: str) -> None:
    assert FIELDS[name].allowed == words


# The mechanism, on a group of its own.


@dataclass(frozen=True, kw_only=True)
class Base(Settings):
    """One setting, and a field that is none."""

    size: int = setting(3, "how large", low=1, high=9)
    note: str = "not a setting: it has no text"


@dataclass(frozen=True, kw_only=True)
class Group(Base):
    """One of each kind."""

    rate: float = setting(0.5, "how fast", above=0, high=2)
    free: float = setting(0.0, "any number")
    kind: Literal["red", "green"] = setting("red", "which")
    switch: bool = setting(False, "whether")
    name: str = setting(REQUIRED, "what it is called")
    size: int = setting(5, "how large, with another default", low=2)
    limit: int | None = setting(None, "at most so many", low=1)
    share: float | None = setting(None, "at most this share", low=0, high=1)
    label: str | None = setting(None, "a word")
    switched: bool | None = setting(None, "whether, if known")

    def check(self) -> None:
        """Raise InputError unless the size fits the limit."""
        super().check()
        if self.limit is not None and self.size > self.limit:
            raise InputError(f"size is {self.size}: it must not exceed limit ({self.limit})")


GROUP = fields_of(Group)


def test_fields_come_in_the_order_of_their_definition_those_of_the_base_first() -> None:
    own = ["rate", "free", "kind", "switch", "name", "limit", "share", "label", "switched"]
    assert list(GROUP) == ["size", *own]
    assert list(fields_of(Base)) == ["size"]
    assert fields_of(Group) is GROUP


def test_a_field_knows_its_type_range_default_and_text() -> None:
    assert fields_of(Base)["size"] == Field("size", int, 3, "how large", low=1, high=9)
    assert GROUP["size"] == Field("size", int, 5, "how large, with another default", low=2)
    assert GROUP["rate"] == Field("rate", float, 0.5, "how fast", above=0, high=2)
    assert GROUP["kind"] == Field("kind", str, "red", "which", words=("red", "green"))
    assert GROUP["switch"] == Field("switch", bool, False, "whether")
    assert GROUP["limit"] == Field("limit", int, None, "at most so many", optional=True, low=1)
    assert GROUP["share"] == Field("share", float, None, "at most this share", optional=True, low=0, high=1)
    assert GROUP["label"] == Field("label", str, None, "a word", optional=True)
    assert GROUP["switched"] == Field("switched", bool, None, "whether, if known", optional=True)
    assert GROUP["name"].default is REQUIRED


def test_one_of_a_few_words_may_be_left_open() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Open(Settings):
        kind: Literal["red", "green"] | None = setting(None, "which, if any")

    assert fields_of(Open)["kind"] == Field("kind", str, None, "which, if any", words=("red", "green"), optional=True)
    assert Open().kind is None
    assert Open(kind="green").kind == "green"
    with pytest.raises(InputError, match=r"^kind is 'blue': it must be one of red, green$"):
        Open(kind="blue")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "allowed", "metavar"),
    [
        ("size", "an integer >= 2", "INT"),
        ("rate", "a number > 0 and <= 2", "FLOAT"),
        ("free", "a number", "FLOAT"),
        ("kind", "one of red, green", "red|green"),
        ("switch", "true or false", "true|false"),
        ("name", "text", "TEXT"),
        ("limit", "an integer >= 1", "INT"),
        ("share", "a number >= 0 and <= 1", "FLOAT"),
    ],
)
def test_a_field_says_what_is_allowed(name: str, allowed: str, metavar: str) -> None:
    assert GROUP[name].allowed == allowed
    assert GROUP[name].metavar == metavar


def test_an_optional_setting_takes_none_and_checks_anything_else() -> None:
    s = Group(name="a")
    assert (s.limit, s.share, s.label, s.switched) == (None, None, None, None)
    assert Group(name="a", limit=7).limit == 7
    share = Group(name="a", share=1).share
    assert share == 1.0
    assert type(share) is float
    for name, value in (("limit", 0), ("limit", 1.0), ("share", 1.5), ("label", 3), ("switched", 1)):
        fields: dict[str, Any] = {"name": "a", name: value}
        with pytest.raises(InputError, match=f"^{name} is {value}: it must be "):
            Group(**fields)


def test_a_required_setting_must_be_given_and_none_is_no_text() -> None:
    with pytest.raises(TypeError, match="name"):
        Group()
    with pytest.raises(InputError, match=r"^name is None: it must be text$"):
        Group(name=None)  # type: ignore[arg-type]


def test_the_group_checks_how_its_values_fit_each_other() -> None:
    with pytest.raises(InputError, match=r"^size is 5: it must not exceed limit \(4\)$"):
        Group(name="a", limit=4)


def test_text_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(InputError, match=r"^name is .*: it is not valid UTF-8; rename it$"):
        Group(name="\udcff")


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("size", "7", 7),
        ("size", "-7", -7),
        ("size", "7.0", "7.0"),
        ("size", "seven", "seven"),
        ("size", "", ""),
        ("rate", "1", 1.0),
        ("rate", "1e-3", 0.001),
        ("rate", "fast", "fast"),
        ("switch", "true", True),
        ("switch", "False", False),
        ("switch", "1", "1"),
        ("switch", "yes", "yes"),
        ("kind", "green", "green"),
        ("kind", "blue", "blue"),
        ("name", "7", "7"),
        ("limit", "7", 7),
        ("share", "0.5", 0.5),
        ("switched", "TRUE", True),
    ],
)
def test_a_word_of_the_command_line_becomes_the_value_that_it_means(name: str, text: str, value: Any) -> None:
    """A word that means none stays as it is, for the check to name it."""
    found = GROUP[name].from_text(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(("name", "text"), [("size", "7.0"), ("rate", "nan"), ("switch", "1"), ("kind", "blue")])
def test_a_word_that_means_no_value_is_refused_by_name(name: str, text: str) -> None:
    field = GROUP[name]
    with pytest.raises(InputError, match=f"^{name} is .*{text}.*: it must be {field.allowed}$"):
        field.checked(field.from_text(text))


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("rate", "1e-3", 0.001),
        ("rate", 1, 1),
        ("rate", "fast", "fast"),
        ("share", "5e-1", 0.5),
        ("share", None, None),
        ("size", "7", "7"),
        ("name", "1e-3", "1e-3"),
        ("switch", "true", "true"),
    ],
)
def test_yaml_reads_some_numbers_as_text_and_only_those_are_converted(name: str, value: Any, expected: Any) -> None:
    found = GROUP[name].from_yaml(value)
    assert found == expected
    assert type(found) is type(expected)


def test_an_unknown_setting_is_refused_with_the_known_ones() -> None:
    refuse_unknown(["size", "rate"], GROUP)
    with pytest.raises(InputError, match=r"^a\.yaml: unknown setting 'speed': the settings are size, rate, free, "):
        refuse_unknown(["size", "speed", "other"], GROUP, "a.yaml: ")


def test_every_method_has_the_settings_of_all_methods() -> None:
    for group in (DivideMixSettings, RobustSettings):
        assert fields_of(MethodSettings).keys() < fields_of(group).keys()
