"""dividemix report: the page is built again, byte for byte, and only of a finished run."""

from pathlib import Path

import pytest
from toys import toy_job, trained
from workshop import fail

from dividemix.cli import main

pytestmark = pytest.mark.usefixtures("workshop")


def test_the_page_is_built_again_also_from_data_that_has_moved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trained(tmp_path / "run", toy_job(tmp_path))
    page = tmp_path / "run" / "report.html"
    before = page.read_bytes()
    page.unlink()
    assert main(["report", "run"]) == 0
    assert page.read_bytes() == before
    assert "run/report.html: 0." in capsys.readouterr().out
    (tmp_path / "toy.npz").rename(tmp_path / "moved.npz")
    assert "no such file" in fail(capsys, ["report", "run"])
    assert main(["report", "run", "--data", "moved.npz"]) == 0


def test_what_has_no_page_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trained(tmp_path / "run", toy_job(tmp_path), num_epochs=2)
    assert "the run is not finished" in fail(capsys, ["report", "run"])
    assert "nowhere: not a run directory" in fail(capsys, ["report", "nowhere"])
