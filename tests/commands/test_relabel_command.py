"""dividemix relabel against the table it must write; what `relabel` changes is tested in its own room."""

from pathlib import Path

import pytest
from PIL import Image
from workshop import fail

from dividemix.cli import main


@pytest.mark.parametrize(
    ("decisions", "line"),
    [
        (["accept", "keep"], "new.csv: 1 label changed, 1 confirmed; all others are as before\n"),
        (["accept", "accept"], "new.csv: 2 labels changed; all others are as before\n"),
        (["keep", "skip"], "new.csv: 0 labels changed, 1 confirmed, 1 undecided; all others are as before\n"),
    ],
)
def test_the_numbers_of_labels_are_printed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    decisions: list[str],
    line: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_text("path,label\na.png,cat\nb.png,cat\nc.png,dog\n")
    labels = {"accept": "dog", "keep": "cat", "skip": ""}
    rows = [f"{i},{'ab'[i]}.png,cat,{labels[action]},{action}\n" for i, action in enumerate(decisions)]
    Path("corrections.csv").write_text("index,path,given_label,new_label,action\n" + "".join(rows))
    assert main(["relabel", "data.csv", "corrections.csv", "--out", "new.csv"]) == 0
    assert capsys.readouterr().out == f"{line}next: dividemix train new.csv\n"
    expected = [labels[action] or "cat" for action in decisions]
    assert Path("new.csv").read_text().split() == [
        "path,label",
        f"a.png,{expected[0]}",
        f"b.png,{expected[1]}",
        "c.png,dog",
    ]


ISSUES = """\
index,path,is_label_issue,label_score,given_label,predicted_label,predicted_prob,clean_prob_1,loss_1
0,cat/a.png,True,0.01,cat,dog,0.99,0.1,4
1,cat/b.png,True,0.1,cat,dog,0.8,0.1,3
2,dog/c.png,False,0.9,dog,dog,0.9,0.9,0.1
"""


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of three images, and what a run has to say about them."""
    monkeypatch.chdir(tmp_path)
    for name in ("cat/a.png", "cat/b.png", "dog/c.png"):
        path = Path("photos", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (8, 8)).save(path)
    Path("run").mkdir()
    Path("run", "label_issues.csv").write_text(ISSUES)


def images_in(folder: str) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*.png"))


def test_sure_suggestions_are_accepted_without_a_browser(photos: None, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["relabel", "photos", "--run", "run", "--accept-above", "0.95"]
    assert main(words) == 0
    first, last = capsys.readouterr().out.splitlines()
    assert first.endswith("photos_corrected.csv: 1 label changed; all others are as before")
    assert last == f"next: dividemix train {Path.cwd() / 'photos_corrected.csv'}"
    lines = ["path,label", "photos/cat/a.png,dog", "photos/cat/b.png,cat", "photos/dog/c.png,dog"]
    assert Path("photos_corrected.csv").read_text().split() == lines
    assert main([*words, "--copy-to", "clean"]) == 0
    said = "clean: 3 images; 1 label changed; all others are as before\nnext: dividemix train clean\n"
    assert capsys.readouterr().out == said
    assert images_in("clean") == ["cat/b.png", "dog/a.png", "dog/c.png"]
    assert images_in("photos") == ["cat/a.png", "cat/b.png", "dog/c.png"]


def test_the_stored_review_of_a_run_is_applied(photos: None, capsys: pytest.CaptureFixture[str]) -> None:
    Path("run", "review").mkdir()
    Path("run", "review", "corrections.csv").write_text(
        "index,path,given_label,new_label,action\n"
        "0,cat/a.png,cat,,delete\n1,cat/b.png,cat,,ambiguous\n2,dog/c.png,dog,dog,keep\n"
    )
    assert main(["relabel", "photos", "--run", "run", "--copy_to", "clean"]) == 0
    assert capsys.readouterr().out == (
        "clean: 2 images; 0 labels changed, 1 confirmed, 1 deleted, 1 ambiguous; all others are as before\n"
        "next: dividemix train clean\n"
    )
    assert images_in("clean") == ["cat/b.png", "dog/c.png"]
    assert main(["relabel", "photos", "--run", "run", "--copy_to", "less", "--drop_ambiguous"]) == 0
    assert images_in("less") == ["dog/c.png"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no decisions: give corrections.csv from the report, or --run RUN"),
        (["--accept_above", "0.9"], "--accept_above accepts suggestions of a run: name the run by --run RUN"),
        (["--run", "run"], "review run, or --accept_above 0.95 (accepts 1 of 2 suggestions)"),
        (
            ["--run", "run", "--accept_above", "0.995"],
            "the surest has 0.99; review them: dividemix review run, or --accept_above 0.95 (accepts 1 of 2",
        ),
        (["--run", "run", "--accept_above", "95"], "--accept_above is 95: must be a number from 0 to 1, such as 0.95"),
        (["--run", "photos", "--accept_above", "0.9"], "photos: not a run directory"),
        (["--run", "run", "--accept_above", "0", "--copy_to", "photos"], "photos: exists and is not empty"),
        (["--run", "run", "--accept_above", "0", "--out", "taken.csv"], "taken.csv: exists with another content"),
        (["--run", "run", "--accept_above", "0", "--out", "x.csv", "--copy_to", "y"], "give one of them"),
    ],
)
def test_mistakes_are_one_line_and_change_nothing(
    photos: None, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    Path("taken.csv").write_text("precious")
    assert message in fail(capsys, ["relabel", "photos", *words])


def test_a_run_in_the_place_of_the_data_is_named(photos: None, capsys: pytest.CaptureFixture[str]) -> None:
    Path("run/checkpoints").mkdir(exist_ok=True)
    Path("run/config.yaml").touch()
    assert "run is a run, not data: dividemix relabel DATA --run run" in fail(capsys, ["relabel", "run"])
    for words in (["relabel", "run", "photos"], ["relabel", "photos", "run"]):
        assert "dividemix relabel photos --run run" in fail(capsys, words)
    assert "run is a run, not data" in fail(capsys, ["relabel", "run", "--run", "run"])
