"""One planner behind every face: the command line and dividemix.train against each other, on fifteen requests.

Compared are the settings, the choices with their reasons, and the name of the run, as both give them to Run.create.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from toys import save_toy
from workshop import flags_of, printed

import dividemix
from dividemix.cli import main
from dividemix.planning.choices import Choice
from dividemix.planning.job import FORMAT, Job
from dividemix.runs.run import Run

REQUESTS: dict[str, dict[str, Any]] = {
    "the embedded set": {"data": "fashion"},
    "with noise and a seed": {"data": "fashion", "noise": "symmetric:0.5", "seed": 3},
    "a few epochs": {"data": "fashion", "epochs": 3},
    "a few epochs, a length given": {"data": "fashion", "epochs": 6, "warmup_epochs": 2, "lr": 1e-3},
    "another method": {"data": "fashion", "method": "cross_entropy", "epochs": 5, "limit_train": 100},
    "a preset of the paper": {"data": "fashion", "preset": "cifar10-sym-90", "net": "small_cnn", "loss_window": 3},
    "your own data": {"data": "toy.npz"},
    "your own data, settings given": {"data": "toy.npz", "epochs": 7, "net_width": 4, "batch_size": 8, "flip": False},
    "your own data, imbalanced": {"data": "imbalanced/toy.npz", "holdout": 0.0, "device": "cpu"},
    "vectors": {"data": "vectors.npz"},
    "vectors, a network": {"data": "vectors.npz", "net": "mlp", "epochs": 2},
    "texts": {"data": "news.csv", "text_column": "text", "encoder": "tfidf"},
    "texts, a setting of robust": {"data": "news.csv", "text_column": "text", "encoder": "tfidf", "lambda_u": 5.0},
    "rows": {"data": "people.csv", "target": "risk"},
    "your own data, the paper's method": {"data": "toy.npz", "method": "dividemix", "noise": "pair_flip:0.25"},
}


@dataclass(frozen=True)
class Asked:
    """What Run.create was asked for."""

    name: str
    values: dict[str, Any]
    choices: list[Choice]


class CreatedError(Exception):
    """Stops where the training would begin."""


@pytest.fixture(autouse=True)
def _workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working directory with data, of which some has classes of different sizes."""
    monkeypatch.chdir(tmp_path)
    save_toy(tmp_path)
    labels = np.arange(60) % 3
    np.savez(tmp_path / "vectors.npz", features=np.eye(3, 5, dtype=np.float32)[labels], labels=labels)
    news = [f"{word} {word} number {row},{word}" for row in range(20) for word in ("cats", "dogs", "owls")]
    (tmp_path / "news.csv").write_text("\n".join(["text,label", *news]))
    (tmp_path / "people.csv").write_text("\n".join(["age,risk", *(f"{row % 7},{row % 2}" for row in range(60))]))
    (tmp_path / "imbalanced").mkdir()
    save_toy(tmp_path / "imbalanced", y_train=np.where(np.arange(40) < 30, 0, np.arange(40) % 4))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Asked]:
    """What each call of Run.create asked for."""
    calls: list[Asked] = []

    def create(path: Path, job: Job, *, choices: list[Choice], **_: Any) -> None:
        calls.append(Asked(path.name, job.values(), list(choices)))
        raise CreatedError

    monkeypatch.setattr(Run, "create", create)
    return calls


def words_of(request: dict[str, Any]) -> list[str]:
    """The request as words of the command line."""
    settings = {name: str(value).lower() if isinstance(value, bool) else value for name, value in request.items()}
    return [settings.pop("data"), *flags_of(settings)]


@pytest.mark.parametrize("request_name", REQUESTS)
def test_the_command_line_and_python_plan_the_same(
    asked: list[Asked], capsys: pytest.CaptureFixture[str], request_name: str
) -> None:
    request = REQUESTS[request_name]
    with pytest.raises(CreatedError):
        dividemix.train(**request)
    with pytest.raises(CreatedError):
        main(["train", *words_of(request)])
    by_python, by_command_line = asked
    assert by_command_line == by_python
    capsys.readouterr()
    assert yaml.safe_load(printed(capsys, *words_of(request))) == by_python.values | {"format": FORMAT}
    given = {name: value for name, value in request.items() if name != "preset"}
    assert {name: by_python.values[name] for name in given} == given
    for choice in by_python.choices:
        assert by_python.values[choice.name] == choice.value
        assert choice.name not in given


def test_a_request_that_is_wrong_is_refused_in_the_same_words(capsys: pytest.CaptureFixture[str]) -> None:
    for request in (
        {"data": "toy.npz", "method": "cross_entropy", "lambda_u": 25.0},
        {"data": "toy.npz", "lr": -1.0},
        {"data": "toy.npz", "method": "magic"},
        {"data": "toy.npz", "preset": "best"},
        {"data": "nowhere.npz"},
    ):
        with pytest.raises(dividemix.InputError) as refusal:
            dividemix.train(**request)
        assert main(["train", *words_of(request)]) == 2
        error = capsys.readouterr().err.replace("error: --", "error: ")  # only the command line adds the dashes
        assert error == f"dividemix: error: {refusal.value}\n"
