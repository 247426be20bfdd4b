"""dividemix evaluate against the figures that training left in summary.json."""

import json

import numpy as np
import pytest
from workshop import QUICK, fail, succeed, tree_here

from dividemix.cli import main

pytestmark = pytest.mark.usefixtures("workshop")


def test_evaluate_gives_the_accuracy_of_the_summary(capsys: pytest.CaptureFixture[str]) -> None:
    succeed(*QUICK, "--out", "run")
    summary = json.loads(tree_here()["run/summary.json"])
    before = tree_here()
    words = {"last": "the last epoch (2)", "best": "the best epoch ("}
    for checkpoint, accuracy in (("last", summary["final_acc"]), ("best", summary["best_acc"])):
        capsys.readouterr()
        assert main(["evaluate", "run", "--checkpoint", checkpoint]) == 0
        said = capsys.readouterr().out
        assert f"run: robust, {words[checkpoint]}" in said
        assert f"accuracy {accuracy:.2f} %" in said
    capsys.readouterr()
    main(["evaluate", "run"])
    table = [line.replace("│", " ").split() for line in capsys.readouterr().out.splitlines() if line[:1] == "│"]
    assert table == [[name, f"{recall:.1f}"] for name, recall in summary["class_recall"].items()]
    assert tree_here() == before


def test_the_model_of_the_run_is_tested_and_not_the_last_epoch(capsys: pytest.CaptureFixture[str]) -> None:
    succeed(*QUICK, "--holdout", "0.2", "--lr", "0.1", "--epochs", "4", "--out", "run")
    summary = json.loads(tree_here()["run/summary.json"])
    assert summary["kept_epoch"] < 4, "choose another rate, so that the test shows something"
    capsys.readouterr()
    assert main(["evaluate", "run"]) == 0
    said = capsys.readouterr().out
    assert f"run: robust, the run's model (epoch {summary['kept_epoch']} of 4), 12 test images" in said
    assert f"accuracy {summary['kept_acc']:.2f} %" in said


def test_the_training_data_as_test_data_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    succeed(*QUICK, "--out", "run")
    assert main(["evaluate", "run", "--test", "./toy.npz"]) == 0
    assert "./toy.npz is what the run was trained on: the model may know these labels" in capsys.readouterr().err


def test_a_run_without_test_images_is_told_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    with np.load("toy.npz") as arrays:
        np.savez("bare.npz", x_train=arrays["x_train"], y_train=arrays["y_train"])
    succeed("bare.npz", *QUICK[1:], "--out", "run")
    line = fail(capsys, ["evaluate", "run"])
    assert "run: the run has no test images: give labelled ones by --test DATA; dividemix predict run DATA" in line
