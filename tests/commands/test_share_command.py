"""dividemix share and relabel against what they must print and leave; the formats are tested in their own room."""

import json
import sys
from pathlib import Path

import pytest
from workshop import fail

from dividemix.cli import main

sys.path.append(str(Path(__file__).parents[1] / "relabel"))

from shared_run import labels_of, make_run


@pytest.fixture(autouse=True)
def _run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_run(tmp_path)
    monkeypatch.chdir(tmp_path)


def test_there_and_back(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["share", "run", "--to", "fiftyone", "--out", "labels.json"]) == 0
    assert capsys.readouterr().out == "labels.json: 4 samples\n"
    content = json.loads(Path("labels.json").read_text())
    content["samples"][0]["tags"].append("accept")
    Path("export.json").write_text(json.dumps(content))
    assert main(["relabel", "photos", "export.json", "--out", "new.csv"]) == 0
    assert capsys.readouterr().out.startswith("new.csv: 1 label changed; all others are as before\n")
    assert labels_of(Path("new.csv"))["cat/a b.png"] == "dog"


def test_two_files_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["share", "run", "--to", "label-studio", "--all"]) == 0
    assert capsys.readouterr().out == "run/label-studio.json, run/label-studio.xml: 4 samples\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["share", "run", "--to", "excel"], "--to is 'excel': it must be one of label-studio"),
        (["share", "photos", "--to", "datalab"], "photos: not a run directory"),
        (["share", "run", "--to", "datalab", "--out", "x.json"], "--out is x.json: for datalab a .csv file is written"),
        (["share", "run", "--to", "datalab", "--out", "no/x.csv"], "--out is no/x.csv: no folder no"),
        (["share", "run", "--to", "datalab", "--image_url", "x"], "--image_url is 'x': datalab takes no addresses"),
        (["share", "run", "--to", "fiftyone", "--data", "gone"], "--data is gone: no such file or folder; name where"),
        (["relabel", "photos", "run"], "run: is a folder without decisions"),
        (["relabel", "photos", "run/model/config.json"], "has no decisions that can be recognised"),
    ],
)
def test_mistakes(capsys: pytest.CaptureFixture[str], words: list[str], message: str) -> None:
    assert message in fail(capsys, words)
