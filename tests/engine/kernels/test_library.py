"""The library's loading: the oracles are the files that a stranger could have put in its way, and /proc."""

import ctypes
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from convnets import needs_compiler

from dividemix.engine.kernels.library import load_library


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Compile again, with temporary files in tmp_path."""
    load_library.cache_clear()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield
    load_library.cache_clear()


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, int, int]]:
    """Every path that is loaded, with the mode and the owner of its folder at that moment."""
    seen, load = [], ctypes.CDLL

    def watch(path: str) -> ctypes.CDLL:
        status = Path(path).parent.stat()
        seen.append((Path(path), status.st_mode & 0o777, status.st_uid))
        return load(path)

    monkeypatch.setattr(ctypes, "CDLL", watch)
    return seen


@needs_compiler
def test_a_planted_file_is_never_loaded(
    loaded: list[tuple[Path, int, int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under every name that an object file has or could have, in all folders that others can guess."""
    monkeypatch.chdir(tmp_path)
    names = ("kernels.so", "convolution.so", "winograd.so", "libkernels.so")
    planted = [folder / name for folder in (tmp_path, tmp_path / "dividemix") for name in names]
    for path in planted:
        path.parent.mkdir(exist_ok=True)
        path.write_text("planted")
    before = set(tmp_path.iterdir())
    load_library()
    ((path, mode, owner),) = loaded
    assert path not in planted
    assert path.parent.parent == tmp_path
    assert path.parent not in before  # a new folder
    assert (mode, owner) == (0o700, os.geteuid())
    assert set(tmp_path.iterdir()) == before  # which is gone again
    assert all(path.read_text() == "planted" for path in planted)


@needs_compiler
def test_no_two_processes_use_the_same_folder(loaded: list[tuple[Path, int, int]]) -> None:
    load_library()
    load_library.cache_clear()
    load_library()
    assert len({path.parent for path, _, _ in loaded}) == 2


@needs_compiler
@pytest.mark.parametrize("mode", [0o777, 0o750, 0o701])
def test_a_folder_that_others_can_open_is_refused(
    loaded: list[tuple[Path, int, int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(mode)
    monkeypatch.setattr(tempfile, "mkdtemp", lambda *_, **__: str(shared))
    with pytest.raises(OSError, match="is not private"):
        load_library()
    assert not loaded


@needs_compiler
def test_a_folder_of_another_user_is_refused(
    loaded: list[tuple[Path, int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(OSError, match="is not private"):
        load_library()
    assert not loaded


@needs_compiler
def test_no_second_library_of_threads_is_loaded() -> None:
    """Two would spin against each other."""
    script = """
import torch
from dividemix.engine.kernels.convolution import weight_gradient
torch.ones(64, 64) @ torch.ones(64, 64)
weight_gradient(torch.ones(2, 16, 8, 8), torch.ones(2, 16, 8, 8))
maps = open("/proc/self/maps").read().splitlines()
print(len({line.split()[-1] for line in maps if "libgomp" in line or "libomp" in line or "libiomp" in line}))
"""
    if not sys.platform.startswith("linux"):
        pytest.skip("reads /proc")
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "1"
