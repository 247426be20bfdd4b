"""The run directory against the file system: what is there before, after, and when something goes wrong between."""

import itertools
import json

import pytest
import torch
from faults import dying
from toys import tree

from dividemix.errors import InputError
from dividemix.planning.job import Job
from dividemix.runs.directory import RunDirectory, environment, refuse_existing

ROWS = [{"epoch": 1, "test_acc": 0.1 + 0.2}, {"epoch": 2, "test_acc": None}]


def fill(directory):
    directory.write_job(Job(data="fashion"))
    directory.write_json("env.json", {"name": "é"})


def make(path, *, overwrite=False):
    return RunDirectory.create(path, fill, overwrite=overwrite)


def test_a_new_directory_appears_filled(tmp_path):
    path = tmp_path / "deep" / "run"

    def watched(directory):
        assert not path.exists()
        fill(directory)

    directory = RunDirectory.create(path, watched, overwrite=False)
    assert directory.path == path
    assert directory.read_job() == Job(data="fashion")
    assert json.loads((path / "env.json").read_text(encoding="utf-8")) == {"name": "é"}
    assert sorted(tree(tmp_path)) == ["deep", "deep/run", "deep/run/config.yaml", "deep/run/env.json"]


def test_an_empty_folder_may_become_a_run(tmp_path):
    (tmp_path / "run").mkdir()
    assert make(tmp_path / "run").read_job() == Job(data="fashion")


def run_there(path):
    make(path)


def file_there(path):
    path.write_text("mine")


def folder_there(path):
    path.mkdir()
    (path / "thesis.txt").write_text("mine")


@pytest.mark.parametrize(
    ("occupy", "overwrite", "message"),
    [
        (run_there, False, "holds a run already: use --resume, --overwrite, or another --out"),
        (file_there, False, "is not a run directory"),
        (file_there, True, "is not a run directory"),
        (folder_there, False, "is not a run directory"),
        (folder_there, True, "is not a run directory"),
    ],
)
def test_what_is_there_is_refused_and_left_untouched(tmp_path, occupy, overwrite, message):
    path = tmp_path / "run"
    occupy(path)
    before = tree(tmp_path)
    for attempt in (make, refuse_existing):
        with pytest.raises(InputError, match=message):
            attempt(path, overwrite=overwrite)
    assert tree(tmp_path) == before


def test_overwriting_leaves_nothing_of_the_old_run(tmp_path):
    old = make(tmp_path / "run")
    old.append_row(ROWS[0])
    refuse_existing(tmp_path / "run", overwrite=True)
    new = make(tmp_path / "run", overwrite=True)
    assert new.read_rows() == []
    assert sorted(tree(tmp_path)) == ["run", "run/config.yaml", "run/env.json"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_an_error_while_filling_leaves_things_as_they_were(tmp_path, overwrite):
    if overwrite:
        make(tmp_path / "run").append_row(ROWS[0])
    before = tree(tmp_path)

    def broken(directory):
        fill(directory)
        raise InputError("no")

    with pytest.raises(InputError, match="no"):
        RunDirectory.create(tmp_path / "run", broken, overwrite=overwrite)
    assert tree(tmp_path) == before


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_process_that_dies_leaves_a_whole_run_or_none_and_the_next_cleans_up(tmp_path, overwrite):
    for at in itertools.count():
        path = tmp_path / str(at) / "run"
        path.parent.mkdir()
        if overwrite:
            make(path).write_rows(ROWS)
        old = tree(path)
        with dying(path.parent, at) as fault:
            make(path, overwrite=overwrite)
        new = sorted(tree(path)) == ["config.yaml", "env.json"]
        assert new or tree(path) == (old if path.exists() else {}), f"half a run, after dying at operation {at}"
        if not fault.happened:
            break
        make(path, overwrite=True)
        assert sorted(tree(path.parent)) == ["run", "run/config.yaml", "run/env.json"]
    assert at > 5


def test_metrics_come_back_exactly(tmp_path):
    directory = RunDirectory(tmp_path)
    assert directory.read_rows() == []
    for row in ROWS:
        directory.append_row(row)
    assert directory.read_rows() == ROWS
    appended = (tmp_path / "metrics.jsonl").read_bytes()
    directory.write_rows(ROWS)
    assert (tmp_path / "metrics.jsonl").read_bytes() == appended
    directory.write_rows(ROWS[:1])
    assert directory.read_rows() == ROWS[:1]


def test_a_last_line_cut_short_anywhere_does_not_count(tmp_path):
    directory = RunDirectory(tmp_path)
    directory.write_rows(ROWS)
    whole = (tmp_path / "metrics.jsonl").read_bytes()
    first = len(json.dumps(ROWS[0])) + 1
    for end in range(first, len(whole)):
        (tmp_path / "metrics.jsonl").write_bytes(whole[:end])
        assert directory.read_rows() == ROWS[:1]


@pytest.mark.parametrize("line", ["{", "7", "\x00\x00", "[1]"])
def test_a_damaged_line_in_the_middle_is_told(tmp_path, line):
    directory = RunDirectory(tmp_path)
    (tmp_path / "metrics.jsonl").write_text(f'{{"epoch": 1}}\n{line}\n{{"epoch": 3}}\n')
    with pytest.raises(InputError, match=r"metrics\.jsonl.*damaged"):
        directory.read_rows()


def test_nan_is_never_written(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        RunDirectory(tmp_path).append_row({"loss": float("nan")})


def test_the_environment_names_versions_machine_and_command():
    found = environment(torch.device("cpu"))
    assert {"dividemix", "python", "torch", "numpy", "platform", "num_threads", "device", "command"} == set(found)
    assert json.loads(json.dumps(found)) == found
