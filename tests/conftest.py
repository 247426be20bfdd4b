"""What every test has: one thread; and where the tests of the commands work."""

from pathlib import Path

import pytest
import torch
from toys import save_toy

torch.set_num_threads(1)  # the nets are tiny, and two busy test processes would spin against each other


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working directory with toy.npz, and a wide terminal."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    save_toy(tmp_path)
