"""dividemix export against the file it must leave; what the file computes is tested with `model.export`."""

import hashlib
from pathlib import Path

import pytest
from small_model import small_model

from dividemix.cli import main
from dividemix.model import EXPORT_FORMATS
from dividemix.model import export as export_module


@pytest.fixture(autouse=True)
def _workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model in run/, and a format that is made at once."""
    monkeypatch.chdir(tmp_path)
    small_model().save_pretrained(tmp_path / "run" / "model")
    format = (lambda model: b"content", lambda content: small_model().predict_proba)
    monkeypatch.setitem(export_module.FORMATS, "pt2", format)


@pytest.mark.parametrize(("flags", "out"), [([], "run/model.pt2"), (["--out", "mine.bin"], "mine.bin")])
def test_the_file_is_where_it_should_be_and_its_difference_is_reported(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, flags: list[str], out: str
) -> None:
    assert main(["export", "run", "--format", "pt2", *flags]) == 0
    assert (tmp_path / out).read_bytes() == b"content"
    printed = capsys.readouterr().out
    assert f"{out}: probabilities differ by at most " in printed
    assert f"sha256 {hashlib.sha256(b'content').hexdigest()}\n" in printed


def test_the_help_has_every_format(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["export", "--help"])
    text = " ".join(capsys.readouterr().out.split())  # lines are broken anywhere
    assert all(f"{name}: {what}" in text for name, what in EXPORT_FORMATS.items())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["nowhere", "--format", "pt2", "--out", "x"],
            "not a run directory or a model: give the directory that dividemix train wrote",
        ),
        (["nowhere", "--format", "pt2"], "nowhere"),
        (["run"], "--format"),
        (["run", "--format", "nothing"], "pt2"),
        (["run", "--format", "pt2", "--out", "run"], "name a file in an existing folder"),
    ],
)
def test_mistakes_end_in_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    assert main(["export", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("dividemix: error: ")
    assert error.count("\n") == 1
    assert message in error
