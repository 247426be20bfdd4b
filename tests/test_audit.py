"""The audit of versions, against advisories written by hand."""

import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml

AUDIT = runpy.run_path(str(Path(__file__).parents[1] / "tools" / "audit.py"))
RANGES = [{"introduced": "0"}, {"fixed": "1.2"}, {"introduced": "2.0"}, {"last_affected": "2.3"}]


@pytest.mark.parametrize(
    ("version", "expected"),
    [("0.9", True), ("1.2", False), ("1.10", False), ("2.0", True), ("2.3", True), ("2.3.1", False), ("7", True)],
)
def test_a_version_is_affected_if_it_is_listed_or_in_a_range(version: str, expected: bool) -> None:
    affected = {"versions": ["7"], "ranges": [{"type": "ECOSYSTEM", "events": RANGES}, {"type": "GIT", "events": []}]}
    advisory: dict[str, Any] = {"id": "A", "affected": [affected]}
    assert AUDIT["is_affected"](version, advisory) is expected
    assert not AUDIT["is_affected"](version, {**advisory, "withdrawn": "2020"})


def test_a_hole_in_what_is_installed_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Oracle: an advisory on every version of NumPy, and one on a package that is not used."""
    events = [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}]}]
    for name in ("numpy", "Not_Used"):
        (tmp_path / "vulns" / name).mkdir(parents=True)
        advisory = {"id": f"HOLE-{name}", "affected": [{"ranges": events}], "published": "2024-01-02T00:00:00Z"}
        (tmp_path / "vulns" / name / "1.yaml").write_text(yaml.safe_dump(advisory))
    assert AUDIT["main"](tmp_path) == 1
    said = capsys.readouterr().out
    assert "constraints.txt: numpy " in said
    assert "lower bound: numpy " in said
    assert said.endswith("1 advisories, the newest of 2024-01-02: 2 holes\n")
