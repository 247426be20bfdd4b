"""Methods defined outside the package go through everything that the package's own go through.

Oracle: an undisturbed run. Two such methods are in tests/outside_methods.py, a few dozen lines each.
"""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import outside_methods
import pytest
from method_checks import SHORT, assert_resumes, assert_trains_on_odd_data
from outside_methods import SOFT_LABELS
from toys import SETTINGS, save_toy, settled

import dividemix
from dividemix.cli import main
from dividemix.errors import InputError
from dividemix.planning.job import Job

TESTS = Path(__file__).parents[1]
METHODS = {"outside_methods:SOFT_LABELS": [], "outside_methods:TRUSTED_STEPS": ["--trusted", "trusted.npz"]}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    save_toy(tmp_path)
    (tmp_path / "toy.npz").rename(tmp_path / "noisy.npz")
    save_toy(tmp_path)
    (tmp_path / "toy.npz").rename(tmp_path / "trusted.npz")


def words(method: str, out: str, **changes: object) -> list[str]:
    """The command line that trains the toy data by a method."""
    own = {name: value for name, value in (SETTINGS | {"epochs": 6} | changes).items() if name != "warmup_epochs"}
    flags = [word for name, value in own.items() for word in (f"--{name}", str(value))]
    return ["train", "noisy.npz", "--preset", "fashion", "--method", method, *METHODS[method], *flags, "--out", out]


def wait_for_epochs(run: Path, number: int) -> None:
    """Return once so many epochs are on disk."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        metrics = run / "metrics.jsonl"
        if metrics.is_file() and metrics.read_bytes().count(b"\n") >= number:
            return
        time.sleep(0.005)
    raise AssertionError("the epochs did not come")


@pytest.mark.parametrize("method", METHODS)
def test_it_trains_judges_and_reports(method: str, tmp_path: Path) -> None:
    assert main(words(method, "run")) == 0
    run = tmp_path / "run"
    summary = json.loads((run / "summary.json").read_text())
    assert summary["method"] == method
    assert summary["epochs"] == 6
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [row["phase"] for row in rows] == (["hard"] + ["soft"] * 5 if "SOFT" in method else ["train"] * 6)
    with (run / "label_issues.csv").open() as file:
        issues = list(csv.DictReader(file))
    assert len(issues) == 40
    if "SOFT" in method:  # its own opinion: as clean as probable
        for issue in issues:
            assert float(issue["clean_prob_1"]) == pytest.approx(np.exp(-float(issue["loss_1"])), rel=1e-4)
    assert "<title>" in (run / "report.html").read_text(encoding="utf-8")


def test_soft_labels_have_a_column_for_a_class_without_samples() -> None:
    assert_resumes(SOFT_LABELS, SOFT_LABELS.settings(**SHORT))
    assert_trains_on_odd_data(SOFT_LABELS)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_a_killed_run_resumes_to_the_same_bytes(method: str, tmp_path: Path) -> None:
    assert main(words(method, "straight")) == 0
    paths = os.pathsep.join(filter(None, (str(TESTS), os.environ.get("PYTHONPATH"))))
    environment = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "dividemix", *words(method, "killed"), "--resume"]
    for number in (1, 3):
        with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as process:
            wait_for_epochs(tmp_path / "killed", number)
            process.send_signal(signal.SIGKILL)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert settled(tmp_path / "killed") == settled(tmp_path / "straight")


@pytest.mark.parametrize("method", METHODS)
def test_a_repetition_by_its_own_flags_gives_the_same_run(method: str, tmp_path: Path) -> None:
    """What `reproduce` does: all settings as flags, to a run directory of its choice."""
    assert main(words(method, "first")) == 0
    job = dividemix.Run.load(tmp_path / "first", trust_net=True).job
    assert main(["train", *job.flags(), "--resume", "--out", "second"]) == 0
    first, second = (settled(tmp_path / name) for name in ("first", "second"))
    for files in (first, second):  # what was chosen for the first is given for the second
        files["summary.json"] = {**json.loads(files["summary.json"]), "choices": None}
        del files["report.html"]
        files.pop("choices.json", None)
    assert second == first
    assert main(["train", *job.flags(), "--resume", "--out", "second"]) == 0  # a finished run is not repeated


def test_from_python_it_is_the_same_run(tmp_path: Path) -> None:
    method = "outside_methods:SOFT_LABELS"
    assert main(words(method, "shell")) == 0
    settings = {name: value for name, value in SETTINGS.items() if name != "warmup_epochs"}
    dividemix.train(
        "noisy.npz", method=method, preset="fashion", out="python", progress=False, **(settings | {"epochs": 6})
    )
    assert settled(tmp_path / "python") == settled(tmp_path / "shell")


def test_its_settings_are_flags_and_other_methods_settings_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    method = "outside_methods:SOFT_LABELS"
    assert main([*words(method, "run"), "--pull", "0.5"]) == 0
    assert Job.of({"data": "x", "method": method, "pull": 0.5}).values()["pull"] == 0.5
    capsys.readouterr()
    assert main([*words(method, "other"), "--lambda_u", "25"]) == 2
    error = capsys.readouterr().err
    assert f"method {method} has no setting lambda_u: leave it out; its own settings: pull, hard_epochs" in error


def test_code_that_a_run_names_is_trusted_by_the_user_only(tmp_path: Path) -> None:
    assert main(words("outside_methods:SOFT_LABELS", "run")) == 0
    with pytest.raises(InputError, match="its method 'outside_methods:SOFT_LABELS' is Python code"):
        dividemix.Run.load(tmp_path / "run")


def test_a_sweep_reads_the_runs_of_the_method_that_it_names(tmp_path: Path) -> None:
    shutil.copy(outside_methods.__file__, tmp_path)  # the runs are processes of their own
    flags = ["--method", "outside_methods:SOFT_LABELS", "--set", "epochs=2", "--set", "net_width=2"]
    assert main(["sweep", "noisy.npz", "--vary", "pull=0.3,0.5", *flags, "--out", "swept"]) == 0
    assert (tmp_path / "swept" / "sweep.csv").is_file()


def test_a_method_without_its_trusted_samples_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    command = [word for word in words("outside_methods:TRUSTED_STEPS", "run") if "trusted" not in word]
    assert main(command) == 2
    assert "needs samples with trusted labels: name them by --trusted" in capsys.readouterr().err
