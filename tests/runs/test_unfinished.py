"""How a run is named."""

from pathlib import Path

import pytest

from dividemix.runs.unfinished import named_run


def test_a_run_in_the_folder_runs_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "one" / "checkpoints").mkdir(parents=True)
    (tmp_path / "runs" / "one" / "config.yaml").touch()
    assert named_run("one") == Path("runs/one")
    assert named_run("runs/one") == Path("runs/one")
    assert named_run("two") == Path("two")  # the command says that there is none
    (tmp_path / "one").mkdir()
    assert named_run("one") == Path("one")  # a path comes first


@pytest.mark.parametrize("text", ["a\0b", "x" * 5000, "\ud800"])
def test_a_text_that_cannot_be_a_path_is_left_to_the_command(text: str) -> None:
    assert named_run(text) == Path(text)
