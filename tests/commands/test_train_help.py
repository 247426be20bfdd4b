"""The help of dividemix train against the fields of the settings and the settings that each method has."""

import ast
import inspect
import re

import pytest
from workshop import shown

from dividemix.methods import METHODS
from dividemix.methods.method import MethodSettings
from dividemix.planning import defaults, lengths
from dividemix.planning.choices import CHOSEN, SELDOM_CHOSEN
from dividemix.planning.job import own_fields
from dividemix.planning.presets import preset_values
from dividemix.settings import fields_of

pytestmark = pytest.mark.usefixtures("workshop")

INTERNAL = {"earlier_plans"}  # written to a run's config.yaml; nobody gives it
SETTINGS = [
    (method, name) for method in METHODS for name in fields_of(METHODS[method].settings) if name not in INTERNAL
]


def help_of_train(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The text in one line: how it is wrapped does not matter."""
    return " ".join(shown(capsys, "train", *arguments, "--help").split())


@pytest.mark.parametrize(("method", "name"), SETTINGS)
def test_the_help_of_train_has_every_setting(capsys: pytest.CaptureFixture[str], method: str, name: str) -> None:
    """The settings of every method are shown as such: their defaults may differ from method to method."""
    text = help_of_train(capsys, "--method", method, "--preset", "clothing1m")
    group = MethodSettings if name in fields_of(MethodSettings) else METHODS[method].settings
    field = fields_of(group)[name]
    value = preset_values("clothing1m", method).get(name, field.default)
    default = str(value).lower() if isinstance(value, bool) else value
    assert f"--{field.name} " in text
    assert field.doc + ("" if default in (None, "") else f" [{default}]") in text
    assert "[None]" not in text


def test_the_help_of_train_hides_what_nobody_gives(capsys: pytest.CaptureFixture[str]) -> None:
    assert not [name for name in INTERNAL if name in help_of_train(capsys)]


def test_the_settings_of_every_method_have_one_default() -> None:
    """The help shows it for all of them."""
    for name, field in fields_of(MethodSettings).items():
        for method in METHODS.values():
            assert fields_of(method.settings)[name] == field


@pytest.mark.parametrize(
    ("arguments", "method"),
    [
        ([], "robust_history"),  # for your own images
        (["toy.npz", "--method", "cross_entropy"], "cross_entropy"),
        (["--method=dividemix"], "dividemix"),
        (["--preset", "cifar10-sym-20"], "dividemix"),
        (["--preset", "cifar10-sym-20", "--method", "robust"], "robust"),
    ],
)
def test_the_help_shows_the_settings_of_the_chosen_method_and_no_others(
    capsys: pytest.CaptureFixture[str], arguments: list[str], method: str
) -> None:
    text = help_of_train(capsys, *arguments)
    assert f"settings of {method}; in brackets the default; for another method: --method NAME --help" in text
    shown_flags = set(re.findall(r"--(\w+)", text))
    everything = {name for other in METHODS for name in own_fields(other)}
    assert shown_flags & everything == set(own_fields(method))


def test_ordinary_training_has_no_lambda_u(capsys: pytest.CaptureFixture[str]) -> None:
    assert "lambda_u" not in help_of_train(capsys, "--method", "cross_entropy")
    assert "--lambda_u FLOAT" in help_of_train(capsys, "--method", "robust")


def test_the_help_shows_no_number_for_a_setting_that_the_data_chooses(capsys: pytest.CaptureFixture[str]) -> None:
    text = help_of_train(capsys)
    assert "epochs in total [chosen from the data]" in text
    assert "[false]" in text
    assert "falls to zero [cosine]" in text  # of the preset
    assert "the model that is kept, at the end [true; or chosen from the data]" in text
    assert "epochs in total [300]" in help_of_train(capsys, "--preset", "cifar10-sym-50")


def test_the_marked_settings_are_those_that_the_planner_chooses() -> None:
    found = set()
    for module in (defaults, lengths):
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Choice":
                found |= {one.value for one in node.args[:1] if isinstance(one, ast.Constant)}
    assert found - {"method"} == {*CHOSEN, *SELDOM_CHOSEN}


def test_the_help_of_train_has_every_other_flag(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "train", "--help")
    assert text.splitlines()[0] == "usage: dividemix train [DATA] [--SETTING VALUE ...]"
    others = "root limit_train noise preset method out resume overwrite config print_config"
    assert all(f"--{name} " in text for name in others.split())
    assert "DATA" in text


@pytest.mark.parametrize(
    ("names", "value"),
    [
        ("test trusted", "DATA"),
        ("root image_root", "DIR"),
        ("weights", "FILE"),
        ("path_column label_column annotator_column method", "NAME"),
        ("image_size", "PIXELS"),
        ("memory_gb", "GB"),
        ("limit_train limit_test", "N"),
        ("imbalance", "RATIO"),
        ("noise", "KIND:RATE"),
        ("holdout", "SHARE"),
        ("epochs", "INT"),
        ("lr", "FLOAT"),
        ("lr_schedule", "step|cosine"),
        ("flip", "true|false"),
    ],
)
def test_the_help_shows_what_kind_of_value_a_flag_takes(
    capsys: pytest.CaptureFixture[str], names: str, value: str
) -> None:
    text = help_of_train(capsys)
    assert all(f" --{name} {value} " in text for name in names.split())


def test_the_default_of_the_method_is_that_of_the_preset(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([], ["--method", "dividemix"], ["--preset", "cifar10-sym-20"]):
        assert "your own as package.module:OBJECT [that of the preset]" in help_of_train(capsys, *words)
