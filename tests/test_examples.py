"""The examples run as they are, in an empty folder. Oracle: what each says it leaves."""

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples"
EXAMPLES, NOTEBOOKS = sorted(FOLDER.glob("*.py")), sorted(FOLDER.glob("*.ipynb"))


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_it_runs(example: Path, tmp_path: Path) -> None:
    result = subprocess.run([sys.executable, example], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout
    if example.stem == "own_images":
        assert (tmp_path / "example_images_run" / "report.html").is_file()
        assert "of the labels look wrong" in result.stdout


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(notebook: Path, tmp_path: Path) -> None:
    """By a kernel of Jupyter, cell by cell; a cell that raises fails."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    content = nbformat.read(notebook, as_version=4)
    nbformat.validate(content)
    assert not any(cell.get("outputs") for cell in content.cells), "clear the outputs before you commit"
    nbclient.NotebookClient(content, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    printed = [output for cell in content.cells for output in cell.get("outputs", ())]
    assert [output.name for output in printed if output.output_type == "stream"]


def test_there_are_examples() -> None:
    assert EXAMPLES
    assert len(NOTEBOOKS) == 2
