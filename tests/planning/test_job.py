"""Job against its own YAML, and against plain dicts; each wrong setting has a case."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import yaml

from dividemix.cli import main
from dividemix.errors import InputError
from dividemix.methods import find_method
from dividemix.methods.dividemix import DivideMixSettings
from dividemix.methods.method import MethodSettings
from dividemix.methods.reweight import ReweightSettings
from dividemix.methods.robust import RobustSettings
from dividemix.planning.job import JOB_FIELDS, PLACES, Job, read_settings
from dividemix.settings import fields_of

JOBS = [
    Job(data="fashion"),
    Job(
        data="cifar10",
        root="/some where/é: x",
        limit_train=100,
        noise="symmetric:0.5",
        method="cross_entropy",
        settings=MethodSettings(),
    ),
    Job(data="a", root="-r", noise="file:-a=b c.json", test="--data"),  # values that look like flags
    Job(data="a", method="robust", settings=RobustSettings(division="per_class", epochs=7)),
    Job(data="a", trusted="b/c.npz", method="reweight", settings=ReweightSettings(warmup_share=0.2, epochs=7)),
    *(Job(data=word) for word in ("null", "1e5", "yes", "- a", "a: b", "a #b", " a ", "a\nb", "'", "日本.npz", "[x]")),
    Job(
        data="d.npz",
        settings=DivideMixSettings(lr=1e-7, lambda_u=1e22, weight_decay=0.1 + 0.2, seed=2**63 - 1, flip=False),
    ),
]


@pytest.mark.parametrize("job", JOBS)
def test_yaml_round_trip(tmp_path: Path, job: Job) -> None:
    (tmp_path / "config.yaml").write_text(job.to_yaml(), encoding="utf-8")
    assert Job.of(read_settings(tmp_path / "config.yaml")) == job


@pytest.mark.parametrize("job", JOBS)
def test_the_words_of_a_job_mean_the_job(job: Job) -> None:
    """Read in the way of a command line: the data, then --name=value."""
    data, *words = job.flags()
    fields = {**JOB_FIELDS, **fields_of(find_method(job.method).settings)}
    values: dict[str, Any] = {}
    for word in words:
        name, _, value = word.partition("=")
        assert name.startswith("--")
        values[name.removeprefix("--")] = fields[name.removeprefix("--")].from_text(value)
    assert len(values) == len(words)
    assert Job.of({"data": data} | values) == job


@pytest.mark.parametrize("job", JOBS)
def test_the_command_line_takes_the_words_and_the_file_of_a_job(
    job: Job, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a preset of another net, method and schedule, of which nothing may be left."""
    (tmp_path / "config.yaml").write_text(job.to_yaml(), encoding="utf-8")
    for words in (job.flags(), ["--config", str(tmp_path / "config.yaml")]):
        assert main(["train", *words, "--preset", "fashion", "--print_config"]) == 0
        (tmp_path / "printed.yaml").write_text(capsys.readouterr().out, encoding="utf-8")
        assert Job.of(read_settings(tmp_path / "printed.yaml", of_run=True)) == job


@pytest.mark.parametrize("line", ["", "format: 1", "format: 3", "format: two", "format:"])
def test_the_file_of_a_run_of_another_version_is_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(JOBS[0].to_yaml().replace("format: 2", line), encoding="utf-8")
    with pytest.raises(
        InputError, match=r"made by another version of dividemix; .*: train again, or install"
    ) as caught:
        read_settings(path, of_run=True)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_of_settings_needs_no_format_but_may_not_have_another(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("data: fashion\nlr: 0.5\n")
    assert read_settings(path) == {"data": "fashion", "lr": 0.5}
    path.write_text("format: 2\ndata: fashion\nlr: 0.5\n")
    assert read_settings(path) == {"data": "fashion", "lr": 0.5}
    path.write_text("format: 1\ndata: fashion\n")
    with pytest.raises(InputError, match="another version"):
        read_settings(path)


def test_values_are_flat_and_complete() -> None:
    job = JOBS[1]
    expected = {"data": "cifar10", "root": "/some where/é: x", "limit_train": 100, "noise": "symmetric:0.5"}
    expected |= {"test": None, "path_column": "path", "label_column": "label", "image_size": None, "memory_gb": 4.0}
    expected |= {"holdout": 0.0, "weights": None, "trusted": None, "image_root": None}
    expected |= {"limit_test": None, "imbalance": None, "annotators": None, "annotator_column": None}
    expected |= {"labels": None, "test_labels": None, "features_column": None, "encoder": None, "text_column": None}
    expected |= {"test_epochs": True, "pretrained": False, "finetune": False, "max_tokens": 128}
    expected |= {"target": None, "numeric": None, "categorical": None, "drop_columns": None, "key": None}
    assert job.values() == {**expected, "method": "cross_entropy", **dataclasses.asdict(job.settings)}
    assert yaml.safe_load(job.to_yaml()) == {"format": 2} | job.values()


def test_what_is_absent_takes_its_default() -> None:
    assert Job.of({"data": "fashion", "lr": 0.5}) == Job(data="fashion", settings=DivideMixSettings(lr=0.5))


def test_places_are_settings() -> None:
    assert set(PLACES) <= set(Job(data="fashion").values())


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"learning_rate": 1}, r"unknown setting 'learning_rate': did you mean lr\?"),
        ({"warmth": 1}, "unknown setting 'warmth': the settings are data, .*lambda_u"),
        ({"config": {}}, "unknown setting 'config'"),
        ({5: 1}, "unknown setting 5"),
        ({"data": None}, "data is None"),
        ({"data": 5}, "data is 5"),
        ({"data": ["a"]}, r"data is \['a'\]"),
        ({"root": 5}, "root is 5"),
        ({"limit_train": 0}, "limit_train is 0"),
        ({"limit_train": -3}, "limit_train is -3"),
        ({"limit_train": 1.5}, "limit_train is 1.5"),
        ({"limit_train": True}, "limit_train is True"),
        ({"limit_train": "9"}, "limit_train is '9'"),
        ({"noise": 0.5}, "noise is 0.5"),
        ({"noise": None}, "noise is None"),
        ({"method": ["a"]}, r"method is \['a'\]"),
        ({"lr": "fast"}, "lr is 'fast'"),
        ({"epochs": 0}, "epochs is 0"),
        (
            {"division": "global"},
            "method dividemix has no setting division: leave it out; its own settings: warmup_epochs, .*",
        ),
        (
            {"method": "cross_entropy", "alpha": 1},
            "method cross_entropy has no setting alpha: leave it out; it has only the settings that every method has$",
        ),
        ({"trusted": 5}, "trusted is 5: it must be text"),
    ],
)
def test_wrong_settings_are_reported_in_one_line(values: dict[Any, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        Job.of({"data": "fashion"} | values)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file"),
        (b"\xff\xfe\x00", "not YAML"),
        (b"", "not a settings file: it must have lines"),
        (b"- a\n- b\n", "not a settings file: it must have lines"),
        (b"just words", "not a settings file: it must have lines"),
        (b"lr: [1", "not YAML"),
        (b"lr: !!python/object/apply:os.getcwd []", "not YAML"),
        (b"noise: 2020-13-45", "not YAML"),
    ],
)
def test_files_that_hold_no_settings(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "c.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read_settings(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_is_no_settings_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_settings(tmp_path)


def test_a_number_with_an_exponent_is_a_number(tmp_path: Path) -> None:
    """PyYAML follows YAML 1.1, where 1e-3 has no dot and is text; people mean 0.001."""
    path = tmp_path / "config.yaml"
    path.write_text("data: fashion\nlr: 1e-3\n")
    assert Job.of(read_settings(path)).settings.lr == 0.001


@pytest.mark.parametrize(
    ("method", "settings"),
    [("dividemix", RobustSettings()), ("robust", DivideMixSettings()), ("cross_entropy", DivideMixSettings())],
)
def test_settings_of_another_method_are_refused(method: str, settings: MethodSettings) -> None:
    needed = find_method(method).settings.__name__
    with pytest.raises(InputError) as caught:
        Job(data="a", method=method, settings=settings)
    assert str(caught.value) == f"settings are {type(settings).__name__}: method {method} needs {needed}"
