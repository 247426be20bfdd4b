"""dividemix methods against the table of methods."""

import pytest

from dividemix.cli import main
from dividemix.methods import METHODS


@pytest.mark.parametrize("columns", [60, 200])
def test_every_method_has_one_entry_of_one_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main(["methods"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= columns
    column = max(map(len, METHODS))
    names = [line[: column + 1].strip() for line in lines if line.partition(" ")[0] in METHODS]
    assert sorted(names) == sorted(METHODS)
    if columns == 200:
        assert len(lines) == len(names) + 9  # one line each; the others are wrapped where they must be
    text = " ".join(" ".join(lines).split())
    assert "cross_entropy Ordinary training, what the paper calls Cross-Entropy" in text
    assert "Your own method: --method package.module:OBJECT" in text


def test_the_list_begins_with_what_to_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["methods"]) == 0
    first, *groups = capsys.readouterr().out.split("\n\n")
    words = " ".join(first.split())
    assert words.startswith(
        "For your own data, name no method: images are trained by robust_history, vectors and texts"
    )
    assert "For the paper's results, use --method dividemix." in words
    titles = [group.partition(":")[0] for group in groups]
    assert titles == ["For your own data", "The paper", "To compare with", "Your own method"]
