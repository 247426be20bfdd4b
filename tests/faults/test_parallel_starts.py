"""Many processes at a time on one name. Oracle: the files that a process alone leaves.

The children are forked from one process that has imported everything, and start together.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from small_model import save_images, small_images, small_model
from toys import save_toy, settled, toy_job, trained, tree

from dividemix.cli import main
from dividemix.runs.run import Run

NUM_PROCESSES = 16

# Runs `body` in so many children, as soon as all of them exist, and prints a line of JSON for each: its error, or "".
TOGETHER = """
import json, os, sys
import torch, torch._dynamo
import dividemix.display
from dividemix.api import train
from dividemix.cli import main
from dividemix.errors import InputError
from toys import SETTINGS, toy_arrays, toy_job, trained
from pathlib import Path
torch.set_num_threads(1)
read, write = os.pipe()
children = []
for number in range(int(sys.argv[1])):
    result = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write)
        os.read(read, 1)  # until the parent closes its end
        said = ""
        try:
            exec(sys.argv[2])
        except InputError as error:
            said = str(error)
        except BaseException as error:
            said = f"not an InputError: {error!r}"
        os.write(result[1], said.encode())
        os._exit(0)
    os.close(result[1])
    children.append((child, result[0]))
os.close(read)
os.close(write)
for child, result in children:
    os.waitpid(child, 0)
    print(json.dumps(os.read(result, 10000).decode()))
"""


def together(body: str, folder: Path, num_processes: int = NUM_PROCESSES) -> list[str]:
    """The error of each process, or ""."""
    command = [sys.executable, "-W", "ignore", "-c", TOGETHER, str(num_processes), body]
    path = os.pathsep.join(entry for entry in sys.path if entry)  # where the tests' own modules are
    environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, env=environment)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith('"')]


@pytest.mark.slow
def test_runs_without_a_name_all_end_whole(tmp_path: Path) -> None:
    """Row 1: 15 of 16 parallel starts without `out` failed, some after training to the end."""
    body = """
arrays = toy_arrays()
run = train(arrays["x_train"], arrays["y_train"], progress=False, keep_data=False,
            **SETTINGS | {"epochs": 1, "warmup_epochs": 1, "seed": 1})
"""
    assert together(body, tmp_path) == [""] * NUM_PROCESSES
    runs = sorted((tmp_path / "runs").iterdir())
    assert len(runs) == NUM_PROCESSES
    first = settled(runs[0])
    assert all(settled(run) == first for run in runs)


@pytest.mark.slow
def test_of_runs_with_one_name_one_is_made_and_the_others_say_why_not(tmp_path: Path) -> None:
    """Row 1: processes with the same `out` destroyed each other's run without overwrite."""
    save_toy(tmp_path)
    job = 'toy_job(Path("."), epochs=1, method="cross_entropy")'
    said = together(f'trained(Path("run"), {job})', tmp_path)
    assert sorted(said)[0] == ""
    refused = [line for line in said if line]
    assert len(refused) == NUM_PROCESSES - 1
    assert all("has a run already" in line or "another process has created it meanwhile" in line for line in refused), (
        refused
    )
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    trained(tmp_path / "alone", toy_job(tmp_path, epochs=1, method="cross_entropy"))
    assert settled(tmp_path / "run").keys() == settled(tmp_path / "alone").keys()
    assert Run.load(tmp_path / "run", toy_job(tmp_path, epochs=1, method="cross_entropy")).finished


@pytest.mark.slow
def test_a_finished_run_outlives_every_start_without_overwrite(tmp_path: Path) -> None:
    """Row 1: a finished run was deleted when it appeared during creation."""
    trained(tmp_path / "run", toy_job(tmp_path, epochs=1, method="cross_entropy"))
    before = tree(tmp_path / "run")
    body = """
import dividemix.runs.creation as creation, dividemix.runs.run as run
run.refuse_existing = creation.refuse_existing = lambda *_, **__: None  # as if it had appeared a moment later
trained(Path("run"), toy_job(Path("."), epochs=1, method="cross_entropy"))
"""
    said = together(body, tmp_path)
    assert all("another process has created it meanwhile" in line for line in said), said
    assert tree(tmp_path / "run") == before


@pytest.mark.slow
def test_starts_that_may_overwrite_leave_one_whole_run(tmp_path: Path) -> None:
    """Row 1, with overwrite: the last of them wins, none meets an unexpected error, nothing is left of the others."""
    save_toy(tmp_path)
    body = """
from dividemix.runs.run import Run
Run.create(Path("run"), toy_job(Path("."), epochs=1, method="cross_entropy"), overwrite=True)
"""
    said = together(body, tmp_path)
    assert "" in said
    assert not [line for line in said if line.startswith("not an InputError")], said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "toy.npz"]
    assert Run.load(tmp_path / "run", toy_job(tmp_path, epochs=1, method="cross_entropy")).state.epoch == 0


@pytest.mark.slow
def test_predictions_onto_one_file_all_succeed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row 9: several `predict --out` onto one file shared a temporary file, and some failed."""
    small_model().save_pretrained(tmp_path / "model")
    save_images(tmp_path / "images", small_images(5), [f"{number}.png" for number in range(5)])
    body = 'assert main(["predict", "model", "images", "--out", "out.csv", "--overwrite"]) == 0'
    assert together(body, tmp_path) == [""] * NUM_PROCESSES
    monkeypatch.chdir(tmp_path)
    assert main(["predict", "model", "images", "--out", "alone.csv"]) == 0
    assert Path("out.csv").read_text() == Path("alone.csv").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["alone.csv", "images", "model", "out.csv"]
