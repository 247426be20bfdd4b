"""The files of a run directory: what is written comes back, and damage is reported."""

import json
from pathlib import Path

import pytest
import torch
from toys import epoch_row

from dividemix.data.source import Skipped
from dividemix.errors import InputError
from dividemix.runs.directory import RunDirectory, environment

ROWS = [epoch_row(1, test_acc=0.1 + 0.2), epoch_row(2)]


def test_metrics_come_back_exactly(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    assert directory.read_rows() == []
    directory.write_rows(ROWS)
    assert directory.read_rows() == ROWS
    assert [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()] == ROWS
    directory.write_rows(ROWS[:1])
    assert directory.read_rows() == ROWS[:1]


def test_a_last_line_cut_short_anywhere_does_not_count(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    directory.write_rows(ROWS)
    whole = (tmp_path / "metrics.jsonl").read_bytes()
    first = len(json.dumps(ROWS[0])) + 1
    for end in range(first, len(whole)):
        (tmp_path / "metrics.jsonl").write_bytes(whole[:end])
        assert directory.read_rows() == ROWS[:1]


@pytest.mark.parametrize("line", ["{", "7", "\x00\x00", "[1]"])
def test_a_damaged_line_in_the_middle_is_reported(tmp_path: Path, line: str) -> None:
    directory = RunDirectory(tmp_path)
    first, last = (json.dumps(epoch_row(epoch)) for epoch in (1, 3))
    (tmp_path / "metrics.jsonl").write_text(f"{first}\n{line}\n{last}\n")
    with pytest.raises(InputError, match=r"metrics\.jsonl: line 2: damaged"):
        directory.read_rows()


def test_nan_is_never_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        RunDirectory(tmp_path).write_rows([epoch_row(1, losses={"loss": [float("nan")]})])


def test_the_environment_names_versions_machine_and_command() -> None:
    found = environment(torch.device("cpu"))
    machine = {"platform", "processor", "instruction_set", "num_cores", "num_threads", "device"}
    assert {"dividemix", "python", "torch", "numpy", "packages", "command"} | machine <= set(found)
    assert {"safetensors", "pillow", "pyyaml"} <= set(found["packages"])
    assert json.loads(json.dumps(found)) == found


def test_skipped_files_are_read_back_whatever_their_names(tmp_path: Path) -> None:
    skipped = (Skipped('a "b", c.png', "no such file"), Skipped("new\nline.png", "empty"), Skipped("nul\0.png", "NUL"))
    directory = RunDirectory(tmp_path)
    assert directory.read_skipped() == ()
    directory.write_skipped(skipped)
    assert directory.read_skipped() == (*skipped[:2], Skipped("nul\\0.png", "NUL"))  # text files have no NUL


def test_an_environment_is_recorded_once_and_the_first_keeps_what_it_has(tmp_path: Path) -> None:
    """A resumption on another machine, or with other versions, is added; another command alone is not."""
    directory = RunDirectory(tmp_path)
    here, there = {"processor": "a", "torch": "2"}, {"processor": "b", "torch": "2"}
    directory.write_json("env.json", here | {"command": ["train"], "weights": "w.pth: 5 tensors matched"})
    for found in (here, there, there, here):
        directory.add_environment(found | {"command": ["train", "--resume"]})
    first, second = directory.read_environments()
    assert first == here | {"command": ["train"], "weights": "w.pth: 5 tensors matched"}
    assert second == there | {"command": ["train", "--resume"]}
    assert json.loads((tmp_path / "env.json").read_text()) == first | {"resumed": [second]}
