"""The files that are published. Oracle: what a user of a clean environment can do with them, and the tree of src/."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import dividemix

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "dividemix"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The sdist, and the wheel that is built from the sdist."""
    pytest.importorskip("build")
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT))
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


def run(*words: str, folder: Path | None = None) -> str:
    """What a command prints, without this checkout on its path."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def own_files() -> set[str]:
    """The files of the package in this checkout, as a wheel names them."""
    found = (path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(PACKAGE.parent).as_posix() for path in found}


@pytest.mark.slow
def test_the_wheel_has_the_package_its_data_its_licences_and_nothing_else(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[1]) as wheel:
        names = set(wheel.namelist())
    about = f"dividemix-{dividemix.__version__}.dist-info"
    licences = {f"{about}/licenses/{name}" for name in ("LICENSE", "src/dividemix/data/embedded/LICENSE")}
    assert names == own_files() | licences | {f"{about}/{name}" for name in ("METADATA", "RECORD", "WHEEL")} | {
        f"{about}/entry_points.txt"
    }
    assert {"dividemix/py.typed", "dividemix/data/embedded/LICENSE"} <= names
    assert any(name.endswith(".npz") for name in names)
    assert any(name.endswith(".html") for name in names)


@pytest.mark.slow
def test_the_sdist_has_what_a_build_needs_and_no_tests(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[0]) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    beside = {"README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "SECURITY.md", "pyproject.toml", "PKG-INFO"}
    assert names - {".gitignore"} == {f"src/{name}" for name in own_files()} | beside


@pytest.mark.slow
def test_an_index_gets_complete_metadata(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[1]) as wheel:
        text = wheel.read(f"dividemix-{dividemix.__version__}.dist-info/METADATA").decode()
    about = Parser().parsestr(text)
    assert about["Version"] == dividemix.__version__
    assert about["License-Expression"] == "MIT"
    assert about["Requires-Python"] == ">=3.11"
    assert about["Description-Content-Type"] == "text/markdown"
    assert about.get_payload() == (ROOT / "README.md").read_text(encoding="utf-8")
    assert {"Typing :: Typed", "Programming Language :: Python :: 3.11"} <= set(about.get_all("Classifier", []))
    assert {"parquet", "sklearn", "docs", "dev"} <= set(about.get_all("Provides-Extra", []))


@pytest.mark.slow
def test_the_wheel_works_in_a_clean_environment(built: tuple[Path, Path], tmp_path: Path) -> None:
    """Its dependencies are those of this environment; the package can only come from the wheel."""
    run(sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv"))
    python = str(tmp_path / "venv" / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"]
    run(*pip, "install", "--no-deps", "--no-index", str(built[1]))
    site = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    # A path, added after the environment's own: .pth files in it, such as that of this checkout, are not read.
    (Path(site) / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")

    command = str(tmp_path / "venv" / "bin" / "dividemix")
    assert run(python, "-c", "import dividemix; print(dividemix.__file__)").startswith(site)
    assert run(command, "--version").strip() == dividemix.__version__
    flags = ["--limit_train", "40", "--epochs", "2", "--net_width", "2", "--out", "run", "--device", "cpu"]
    run(command, "train", "fashion", *flags, folder=tmp_path)
    assert (tmp_path / "run" / "report.html").is_file()
