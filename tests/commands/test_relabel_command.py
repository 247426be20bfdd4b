"""dividemix relabel against the table it must write; what `relabel` changes is tested in its own room."""

from pathlib import Path

import pytest

from dividemix.cli import main


@pytest.mark.parametrize(
    ("decisions", "line"),
    [
        (["accept", "keep"], "new.csv: 1 label changed, 1 kept, 0 undecided\n"),
        (["accept", "accept"], "new.csv: 2 labels changed, 0 kept, 0 undecided\n"),
        (["keep", "skip"], "new.csv: 0 labels changed, 1 kept, 1 undecided\n"),
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
    assert capsys.readouterr().out == line
    expected = [labels[action] or "cat" for action in decisions]
    assert Path("new.csv").read_text().split() == [
        "path,label",
        f"a.png,{expected[0]}",
        f"b.png,{expected[1]}",
        "c.png,dog",
    ]
