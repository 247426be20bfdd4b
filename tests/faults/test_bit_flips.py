"""Single-bit flips in the files that are read back: each is noticed in one line, or what is read is the same.

Few flips by default; `FAULTS=all pytest -s tests/faults` tries 600 for each kind of file and prints what held.
"""

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_model import small_images, small_model
from toys import save_toy, toy_job, trained

from dividemix.engine.checkpoint import load_checkpoint
from dividemix.errors import InputError
from dividemix.model.model import Model
from dividemix.runs.directory import RunDirectory
from dividemix.runs.run import Run

NUM_FLIPS = 600 if os.environ.get("FAULTS") == "all" else 40
IMAGES = small_images(4)

TIMES = ("seconds", "cpu_seconds", "profile")


def flip(path: Path, content: bytes, bit: int) -> None:
    """Write the content with one bit changed."""
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    path.write_bytes(changed)


def try_flips(path: Path, read: Callable[[], Any], same: Callable[[Any, Any], bool]) -> dict[str, int]:
    """What became of flips all over a file: how many were noticed, and how many changed nothing that is read."""
    content, whole = path.read_bytes(), read()
    draws, held, messages = random.Random(path.name), {"noticed": 0, "harmless": 0}, list[str]()
    bits = draws.sample(range(8 * len(content)), min(NUM_FLIPS, 8 * len(content)))
    for bit in bits:
        flip(path, content, bit)
        try:
            found = read()
        except InputError as error:
            held["noticed"] += 1
            messages.append(str(error))
        else:
            assert same(found, whole), f"bit {bit} of {path.name} changes what is read, and nothing is said"
            held["harmless"] += 1
    path.write_bytes(content)
    assert not [message for message in messages if "\n" in message]
    print(f"{path.name}: {len(bits)} flips, {held['noticed']} noticed, {held['harmless']} harmless")
    return held


def same_checkpoint(a: tuple[dict[str, torch.Tensor], Any], b: tuple[dict[str, torch.Tensor], Any]) -> bool:
    """Whether two checkpoints have the same tensors and facts."""
    return a[1] == b[1] and a[0].keys() == b[0].keys() and all(torch.equal(a[0][name], b[0][name]) for name in a[0])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with held-out samples after two of four epochs."""
    folder = tmp_path_factory.mktemp("flips")
    return trained(folder / "run", toy_job(folder, holdout=0.2, warmup_epochs=1), num_epochs=2).directory.path


@pytest.mark.parametrize("which", ["last", "best"])
@pytest.mark.parametrize("file", ["*.safetensors", "checkpoint.json"])
def test_a_flipped_bit_in_a_checkpoint(run: Path, which: str, file: str) -> None:
    """Row 2: the digest in a checkpoint's name was never compared."""
    folder = run / "checkpoints" / which
    (path,) = folder.glob(file)
    held = try_flips(path, lambda: load_checkpoint(folder), same_checkpoint)
    if file != "checkpoint.json":  # which has white space
        assert held["harmless"] == 0


@pytest.mark.parametrize("file", ["model.safetensors", "config.json"])
def test_a_flipped_bit_in_a_model(tmp_path: Path, file: str) -> None:
    """Row 2: 539 of 600 flips loaded silently; one bit took `evaluate` from 68.8 % to 10.0 %."""
    small_model().save_pretrained(tmp_path)

    def read() -> tuple[Any, Any]:
        model = Model.from_pretrained(tmp_path, device="cpu")
        return {**model.describe(), "versions": None}, model.predict_proba(IMAGES)

    held = try_flips(tmp_path / file, read, lambda a, b: a[0] == b[0] and np.array_equal(a[1], b[1]))
    if file != "config.json":
        assert held["harmless"] == 0


@pytest.mark.parametrize("file", ["metrics.jsonl", "config.yaml", "env.json"])
def test_a_flipped_bit_in_the_other_files_of_a_run(tmp_path: Path, file: str) -> None:
    """Row 8: four differences passed silently. Times, and where the data is, are not results."""
    save_toy(tmp_path)
    path = trained(tmp_path / "run", toy_job(tmp_path, noise="symmetric:0.4"), num_epochs=2).directory.path

    def read() -> tuple[Any, ...]:
        found = Run.load(path)
        rows = [{name: row[name] for name in row if name not in TIMES} for row in found.rows]  # type: ignore[literal-required]
        assert RunDirectory(path).read_environments() is not None
        return found.job.identity, rows, found.material.digest, found.state.epoch

    try_flips(path / file, read, lambda a, b: a == b)
