"""The examples run as they are, in an empty folder. Oracle: what each says it leaves."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_it_runs(example: Path, tmp_path: Path) -> None:
    result = subprocess.run([sys.executable, example], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout
    if example.stem == "own_images":
        assert (tmp_path / "example_images_run" / "report.html").is_file()
        assert "of the labels look wrong" in result.stdout


def test_there_are_examples() -> None:
    assert EXAMPLES
