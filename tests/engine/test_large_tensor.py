"""Tensors in files. Oracle: the same values in a tensor in memory."""

import os
import tempfile
from pathlib import Path

import pytest
import torch

from dividemix.engine import large_tensor as module
from dividemix.engine.large_tensor import large_tensor


@pytest.fixture
def small_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Twenty bytes are all the memory there is."""
    monkeypatch.setattr(module, "IN_MEMORY", 20)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_tensor_in_a_file_is_a_tensor(small_memory: Path) -> None:
    values = torch.arange(12.0).view(4, 3)
    tensor = large_tensor(4, 3)
    tensor[:2] = values[:2]
    tensor[2:] = values[2:]
    assert torch.equal(tensor, values)
    assert torch.equal(torch.from_numpy(tensor.numpy()).argmax(dim=1), values.argmax(dim=1))
    assert list(small_memory.iterdir()) == []  # it has no name, so it cannot be left behind
    if Path("/proc/self/maps").exists():
        assert f"{small_memory}/dividemix-" in Path("/proc/self/maps").read_text()


def test_a_small_tensor_is_in_memory(small_memory: Path) -> None:
    tensor = large_tensor(1, 5)
    tensor[:] = 1
    if Path("/proc/self/maps").exists():
        assert f"{small_memory}/dividemix-" not in Path("/proc/self/maps").read_text()


def test_a_full_disk_is_no_error(small_memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    assert large_tensor(4, 3).shape == (4, 3)
    assert list(small_memory.iterdir()) == []
