"""Job against its own YAML, and against plain dicts; each wrong setting has a case."""

import dataclasses

import pytest
import yaml

from dividemix.config import Config
from dividemix.errors import InputError
from dividemix.planning.job import PLACES, Job, read_settings

JOBS = [
    Job(data="fashion"),
    Job(data="cifar10", root="/some where/é: x", limit_train=100, noise="symmetric:0.5", method="cross_entropy"),
    *(Job(data=word) for word in ("null", "1e5", "yes", "- a", "a: b", "a #b", " a ", "a\nb", "'", "日本.npz", "[x]")),
    Job(data="d.npz", config=Config(lr=1e-7, lambda_u=1e22, weight_decay=0.1 + 0.2, seed=2**63 - 1, flip=False)),
]


@pytest.mark.parametrize("job", JOBS)
def test_yaml_round_trip(tmp_path, job):
    (tmp_path / "config.yaml").write_text(job.to_yaml(), encoding="utf-8")
    assert Job.of(read_settings(tmp_path / "config.yaml")) == job


def test_values_are_flat_and_complete():
    job = JOBS[1]
    expected = {"data": "cifar10", "root": "/some where/é: x", "limit_train": 100, "noise": "symmetric:0.5"}
    expected |= {"test": None, "path_column": "path", "label_column": "label", "image_size": None, "memory_gb": 4.0}
    expected |= {"holdout": 0.0, "weights": None}
    assert job.values() == {**expected, "method": "cross_entropy", **dataclasses.asdict(job.config)}
    assert yaml.safe_load(job.to_yaml()) == job.values()


def test_what_is_absent_takes_its_default():
    assert Job.of({"data": "fashion", "lr": 0.5}) == Job(data="fashion", config=Config(lr=0.5))


def test_places_are_settings():
    assert set(PLACES) <= set(Job(data="fashion").values())


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"learning_rate": 1}, "unknown setting 'learning_rate': allowed are data, .*lambda_u"),
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
    ],
)
def test_wrong_settings_are_told_in_one_line(values, message):
    with pytest.raises(InputError, match=message) as caught:
        Job.of({"data": "fashion"} | values)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file"),
        (b"\xff\xfe\x00", "cannot be read"),
        (b"", "'name: value'"),
        (b"- a\n- b\n", "'name: value'"),
        (b"just words", "'name: value'"),
        (b"lr: [1", "not YAML"),
        (b"lr: !!python/object/apply:os.getcwd []", "not YAML"),
        (b"noise: 2020-13-45", "not YAML"),
    ],
)
def test_files_that_hold_no_settings(tmp_path, content, message):
    path = tmp_path / "c.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read_settings(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_is_no_settings_file(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_settings(tmp_path)


def test_a_number_with_an_exponent_is_a_number(tmp_path):
    """PyYAML follows YAML 1.1, where 1e-3 has no dot and is text; people mean 0.001."""
    path = tmp_path / "config.yaml"
    path.write_text("data: fashion\nlr: 1e-3\n")
    assert Job.of(read_settings(path)).config.lr == 0.001
