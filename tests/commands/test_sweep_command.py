"""dividemix sweep: which runs the words ask for. Nothing is trained; the oracle is the list of settings by hand."""

from pathlib import Path
from typing import Any

import pytest
from workshop import fail

from dividemix.cli import main

pytestmark = pytest.mark.usefixtures("workshop")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The fixed settings and the varied ones of each sweep that was asked for."""
    made: list[tuple[dict[str, Any], dict[str, Any]]] = []

    def make(given: dict[str, Any], varied: dict[str, Any], seeds: range) -> list[Any]:
        made.append((given, varied))
        return []

    monkeypatch.setattr("dividemix.experiments.sweep.make_sweep", make)
    monkeypatch.setattr("dividemix.experiments.sweep.run_sweep", lambda *_, **__: 0)
    return made


def test_a_flag_of_train_is_a_setting_of_all_runs(asked: list[Any]) -> None:
    vary = ["sweep", "toy.npz", "--vary", "lr=0.1,0.2"]
    assert main([*vary, "--set", "epochs=3", "--set", "lambda_u=5", "--set", "noise=symmetric:0.2"]) == 0
    assert main([*vary, "--epochs", "3", "--lambda-u=5", "--noise", "symmetric:0.2"]) == 0
    first, second = asked
    assert first == second
    assert first == (
        {"data": "toy.npz", "epochs": 3, "lambda_u": 5.0, "noise": "symmetric:0.2"},
        {"lr": [0.1, 0.2]},
    )


def test_settings_are_those_of_the_method_that_train_chooses(asked: list[Any]) -> None:
    """The method for images was not known here: its settings were refused."""
    assert main(["sweep", "toy.npz", "--vary", "given_share=0.3,0.5", "--set", "history_decay=0.8"]) == 0
    assert asked == [({"data": "toy.npz", "history_decay": 0.8}, {"given_share": [0.3, 0.5]})]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["toy.npz"], "dividemix sweep needs --vary: see dividemix sweep --help"),
        (["toy.npz", "--vary", "lr=1,2", "--lr", "3"], "lr is both in --vary and in --set: name it once"),
        (["toy.npz", "--vary", "lr=1", "--vary", "lr=2"], "--vary names lr twice: give all its values at once"),
        (["toy.npz", "--vary", "lr=1,2", "--seed", "3"], "--seeds N trains with the seeds 1 to N"),
        (["toy.npz", "--vary", "lr=1,2", "--epoch", "3"], "unknown flag --epoch: did you mean --epochs?"),
        (
            ["toy.npz", "--vary", "lr=1,2", "--method", "mixup", "--lambda_u", "3"],
            "method mixup has no setting lambda_u",
        ),
    ],
)
def test_mistakes_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert message in fail(capsys, ["sweep", *words])
