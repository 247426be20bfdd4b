"""dividemix compare: what it prints, and the files it writes."""

import json
from pathlib import Path

import pytest
from pictures import write_png
from workshop import QUICK, fail, succeed

from dividemix.cli import main

pytestmark = pytest.mark.usefixtures("workshop")


def test_two_runs_as_tables_as_json_and_as_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    for seed in "12":
        succeed(*QUICK, "--noise", "symmetric:0.4", "--seed", seed, "--out", f"runs/{seed}")
    capsys.readouterr()
    assert main(["compare", "runs/1", "runs/2", "--out", "compare.html"]) == 0
    said = capsys.readouterr().out
    assert "A: runs/1 (robust)" in said
    rows = [line.replace("│", " ").split() for line in said.splitlines() if line.startswith("│")]
    summaries = [json.loads(Path(f"runs/{seed}/summary.json").read_text()) for seed in "12"]
    for letter, row, summary in zip("AB", rows, summaries, strict=False):
        assert row[:3] == [letter, f"{summary['kept_acc']:.2f}", f"{summary['final_acc']:.2f}"]
    assert ["seed", "1", "2"] in rows
    assert "held-out  " not in said  # no run held samples out: no empty column
    assert "same order: of all samples" in said
    assert any(row[:2] == ["A,", "B"] for row in rows)
    assert "compare.html: open it for the curves" in said
    page = Path("compare.html").read_text()
    assert "2 runs compared" in page
    assert main(["compare", "runs/1", "runs/2", "--json"]) == 0
    compared = json.loads(capsys.readouterr().out)
    assert compared["settings"] == {"seed": [1, 2]}
    assert compared["pairs"][0]["agreement"]["num_common"] == 40


def test_runs_without_a_common_sample_are_not_said_to_agree(capsys: pytest.CaptureFixture[str]) -> None:
    for folder in ("one", "two"):
        for i in range(40):
            write_png(Path(folder) / "ab"[i % 2] / f"{folder}{i}.png", i)
        succeed(folder, *QUICK[1:], "--out", f"runs/{folder}")
    capsys.readouterr()
    assert main(["compare", "runs/one", "runs/two"]) == 0
    said = capsys.readouterr().out
    assert "warning: no two runs have a sample in common" in said
    assert "flagged by how many" not in said


def test_mistakes_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert "toy.npz: not a run directory" in fail(capsys, ["compare", "toy.npz", "x"])
    assert "--out is x.pdf: a .html or .htm file is written: change the extension" in fail(
        capsys, ["compare", "a", "b", "--out", "x.pdf"]
    )
    assert "--out is no/x.html: it must be a file in an existing" in fail(
        capsys, ["compare", "a", "b", "--out", "no/x.html"]
    )
