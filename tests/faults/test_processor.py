"""The processor: how threads wait on it, and runs that are resumed on another one."""

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from toys import finish, save_toy, settled, toy_job, trained
from workshop import QUICK, spawn

from dividemix.cli import main
from dividemix.errors import OtherProcessorWarning
from dividemix.runs.directory import RunDirectory
from dividemix.runs.run import Run


def test_threads_of_a_command_wait_passively() -> None:
    """Row 4: two threads that wait actively are eleven times slower next to other processes."""
    code = """
import os, sys
os.environ.pop("OMP_WAIT_POLICY", None)
if sys.argv[1:]:
    os.environ["OMP_WAIT_POLICY"] = sys.argv[1]
from dividemix.cli import main
assert "torch" not in sys.modules  # which reads the variable
main(["presets"])
print(os.environ["OMP_WAIT_POLICY"])
"""
    assert spawn(code).stdout.splitlines()[-1] == "PASSIVE"
    assert spawn(code, "ACTIVE").stdout.splitlines()[-1] == "ACTIVE"  # what the user has set stays


@pytest.mark.slow
def test_how_threads_wait_does_not_change_a_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row 4: passive waiting gives the same bytes."""
    save_toy(tmp_path)
    monkeypatch.chdir(tmp_path)
    code = "import os, sys; os.environ['OMP_WAIT_POLICY'] = sys.argv.pop(1); os.environ['OMP_NUM_THREADS'] = '2'\n"
    code += "from dividemix.cli import main; raise SystemExit(main())"
    for policy in ("ACTIVE", "PASSIVE"):
        done = spawn(code, policy, "train", *QUICK, "--out", policy)
        assert done.returncode == 0, done.stderr
    assert settled(tmp_path / "ACTIVE") == settled(tmp_path / "PASSIVE")


def test_a_run_records_the_instruction_set(tmp_path: Path) -> None:
    """Row 12: results differ by CPU, and env.json had no instruction set."""
    path = trained(tmp_path / "run", toy_job(tmp_path), num_epochs=1).directory.path
    recorded = json.loads((path / "env.json").read_text())
    assert recorded["instruction_set"] == torch.backends.cpu.get_cpu_capability()
    assert recorded["processor"]


@pytest.mark.parametrize("changed", [{"processor": "Another 3000"}, {"instruction_set": "AVX0"}, {"processor": [1]}])
def test_a_run_resumed_on_another_processor_warns_in_one_line(tmp_path: Path, changed: dict[str, Any]) -> None:
    """Row 12: the same seed gives 86.70 on AVX2 and 85.85 on AVX-512, and --resume elsewhere did not warn."""
    path = trained(tmp_path / "run", toy_job(tmp_path), num_epochs=1).directory.path
    env = json.loads((path / "env.json").read_text())
    (path / "env.json").write_text(json.dumps(env | changed))
    ((name, there),) = changed.items()
    with pytest.warns(OtherProcessorWarning) as caught:
        finish(Run.load(path))
    (line,) = (str(one.message) for one in caught if one.category is OtherProcessorWarning)
    assert f"the {name.replace('_', ' ')} is {env[name]}, earlier epochs had {there}: bits may differ" in line
    assert "\n" not in line
    assert len(RunDirectory(path).read_environments()) == 2


def test_a_run_resumed_on_the_same_processor_does_not_warn(tmp_path: Path) -> None:
    """Row 12: no false alarm, also for an env.json that says nothing of the instruction set."""
    path = trained(tmp_path / "run", toy_job(tmp_path), num_epochs=1).directory.path
    env = json.loads((path / "env.json").read_text())
    (path / "env.json").write_text(json.dumps({name: env[name] for name in env if name != "instruction_set"}))
    with warnings.catch_warnings():
        warnings.simplefilter("error", OtherProcessorWarning)
        finish(Run.load(path))


def test_the_command_line_prints_that_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Row 12."""
    monkeypatch.chdir(tmp_path)
    path = trained(tmp_path / "run", toy_job(tmp_path, method="cross_entropy"), num_epochs=1).directory.path
    env = json.loads((path / "env.json").read_text())
    (path / "env.json").write_text(json.dumps(env | {"instruction_set": "AVX0"}))
    assert main(["train", "--resume", "--out", "run"]) == 0
    (line,) = (line for line in capsys.readouterr().err.splitlines() if "AVX0" in line)
    assert line.startswith("dividemix: warning: run: the instruction set is ")
