"""What every test has: one thread; and where the tests of the commands work."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from toys import save_toy

torch.set_num_threads(1)  # the nets are tiny, and two busy test processes would spin against each other


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of vectors of the tests' own: theirs must not be found among those of the person who runs them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DIVIDEMIX_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working directory with toy.npz, and a wide terminal."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    save_toy(tmp_path)
