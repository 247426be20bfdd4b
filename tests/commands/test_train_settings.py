"""Where the settings of dividemix train come from, against mappings overlaid by hand."""

import dataclasses
import itertools
from pathlib import Path

import pytest
import yaml
from toys import toy_job, trained
from workshop import QUICK, fail, printed, tree_here

from dividemix.cli import main
from dividemix.methods import METHODS
from dividemix.methods.dividemix import DivideMixSettings
from dividemix.methods.method import MethodSettings
from dividemix.methods.robust import RobustSettings
from dividemix.planning.job import FORMAT, Job, own_fields
from dividemix.planning.presets import preset_values
from dividemix.settings import fields_of

pytestmark = pytest.mark.usefixtures("workshop")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        QUICK,
        ["cifar10", "--root", "somewhere: else", "--preset", "cifar10-sym-90", "--noise", "symmetric:0.9"],
        ["fashion", "--method", "cross_entropy", "--limit_train", "100", "--lr", "1e-7", "--flip", "false"],
    ],
)
def test_print_config_as_config_gives_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    first = printed(capsys, *arguments)
    (tmp_path / "c.yaml").write_text(first)
    assert yaml.safe_load(printed(capsys, "--config", "c.yaml")) == yaml.safe_load(first)
    assert ("# first, the same with --method cross_entropy" in first) == (not arguments)
    assert set(yaml.safe_load(first)) > {*fields_of(METHODS[yaml.safe_load(first)["method"]].settings)}


def test_printing_the_settings_starts_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    before = tree_here()
    printed(capsys, *QUICK)
    assert tree_here() == before


def test_flags_win_over_the_file_which_wins_over_the_preset_in_any_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    preset = preset_values("cifar10-sym-90")
    file = {"lr": 0.5, "lambda_u": 7.0, "loss_window": 3, "noise": "symmetric:0.9"}
    flags = {"lambda_u": 9.0, "seed": 5}
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(file))
    groups = [
        ["cifar10"],
        ["--preset", "cifar10-sym-90"],
        ["--config", "c.yaml"],
        ["--lambda_u", "9", "--seed", "5"],
    ]
    expected = Job(data="cifar10").values()
    expected |= dataclasses.asdict(DivideMixSettings()) | preset | file | flags | {"format": FORMAT}
    for order in itertools.permutations(groups):
        assert yaml.safe_load(printed(capsys, *itertools.chain(*order))) == expected


def test_each_kind_of_data_has_its_preset(capsys: pytest.CaptureFixture[str]) -> None:
    expected = dataclasses.asdict(RobustSettings()) | preset_values("fashion")
    found = yaml.safe_load(printed(capsys, "fashion"))
    assert {name: found[name] for name in expected} == expected
    found = yaml.safe_load(printed(capsys, "fashion", "--preset", "cifar100-sym-90"))
    expected = dataclasses.asdict(DivideMixSettings()) | preset_values("cifar100-sym-90")
    assert {name: found[name] for name in expected} == expected
    found = yaml.safe_load(printed(capsys, "cifar10"))
    assert {name: found[name] for name in expected} == dataclasses.asdict(DivideMixSettings()) | {"method": "dividemix"}
    found = yaml.safe_load(printed(capsys, "toy.npz"))
    expected = preset_values("default") | {"method": "robust_history"}
    assert {name: found[name] for name in expected} == expected


def test_a_method_that_is_named_gets_those_of_the_presets_settings_that_it_has(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = yaml.safe_load(printed(capsys, "fashion", "--method", "cross_entropy"))
    expected = {name: value for name, value in preset_values("fashion").items() if name in fields_of(MethodSettings)}
    assert expected["net"] == "small_cnn"
    assert {name: found[name] for name in expected} == expected
    assert found["method"] == "cross_entropy"


def test_a_setting_that_the_method_lacks_is_refused_with_those_that_it_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "c.yaml").write_text("lambda_u: 25.0")
    by_flag = ["train", "toy.npz", "--method", "cross_entropy", "--lambda_u", "25", "--out", "run"]
    by_file = ["train", "toy.npz", "--method", "cross_entropy", "--config", "c.yaml", "--out", "run"]
    line = "dividemix: error: method cross_entropy has no setting lambda_u: leave it out;"
    line += " it has only the settings that every method has\n"
    assert fail(capsys, by_flag) == line
    assert fail(capsys, by_file) == line.replace("error: ", "error: c.yaml: ")
    line = fail(capsys, ["train", "toy.npz", "--method", "dividemix", "--keep_plausible", "true", "--out", "run"])
    own = ", ".join(own_fields("dividemix"))
    assert line.endswith(f"method dividemix has no setting keep_plausible: leave it out; its own settings: {own}\n")


@pytest.mark.parametrize(
    "words", [["--method", "dividemix"], ["--preset", "default"], ["--method", "mentornet", "--preset", "default"]]
)
def test_trusted_labels_that_the_method_would_ignore_are_refused(
    capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    """They were read and then ignored without a line."""
    line = fail(capsys, ["train", "toy.npz", "--trusted", "toy.npz", *words, "--out", "run"])
    assert line.startswith("dividemix: error: --trusted has no meaning for method ")
    assert line.endswith("that uses trusted labels: mentornet with curriculum data_driven, reweight\n")
    used = ["--method", "mentornet", "--curriculum", "data_driven", "--preset", "default", "--print_config"]
    assert main(["train", "toy.npz", "--trusted", "toy.npz", *used]) == 0


def test_a_run_of_an_earlier_version_that_ignored_trusted_labels_can_still_be_resumed(tmp_path: Path) -> None:
    trained(tmp_path / "run", toy_job(tmp_path, trusted=str(tmp_path / "toy.npz")), num_epochs=3)
    assert main(["resume", "run"]) == 0
    assert (tmp_path / "run" / "summary.json").is_file()


@pytest.mark.parametrize(("epochs", "expected"), [(8, (1, 2, 4)), (80, (1, 16, 40)), (160, (2, 32, 80))])
def test_lengths_that_are_not_given_follow_the_number_of_epochs(
    capsys: pytest.CaptureFixture[str], epochs: int, expected: tuple[int, int, int]
) -> None:
    """Oracle: 1, 16 and 40 of 80 epochs, scaled by hand; a length does not become zero."""
    lengths = ("warmup_epochs", "rampup_epochs", "lr_drop_epoch")
    words = ["clothing1m", "--epochs", str(epochs)]
    found = yaml.safe_load(printed(capsys, *words))
    assert tuple(found[name] for name in lengths) == expected
    found = yaml.safe_load(printed(capsys, *words, "--warmup_epochs", "3"))
    assert tuple(found[name] for name in lengths) == (3, *expected[1:])
