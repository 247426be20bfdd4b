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
    names = [line[: column + 1].strip() for line in lines if line[0] != " "]
    assert names == [*METHODS, "your own"]
    assert (len(lines) == len(names)) == (columns == 200)  # one line each, wrapped where it must be
    text = " ".join(" ".join(lines).split())
    assert "cross_entropy Ordinary training, what the paper calls Cross-Entropy" in text
    assert "your own --method package.module:OBJECT" in text
