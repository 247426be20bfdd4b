"""Vectors on disk: the oracle is what was computed; kills, cuts and flipped bits must change nothing."""

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from numpy.typing import NDArray

from dividemix.encoders import vector_cache
from dividemix.encoders.vector_cache import cached
from dividemix.errors import DamagedCacheWarning, InputError
from dividemix.lock import exclusive

VECTORS = np.random.default_rng(0).normal(size=(25, 3)).astype(np.float32)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_cache, "CHUNK", 10)


class Computer:
    """Gives the vectors of chunks, counts them, and may die before one."""

    def __init__(self, dies_before: int = 99) -> None:
        self.done: list[int] = []
        self.dies_before = dies_before

    def __call__(self, missing: list[range]) -> Iterator[NDArray[np.float32]]:
        for chunk in missing:
            if chunk.start // 10 == self.dies_before:
                raise KeyboardInterrupt
            self.done.append(chunk.start // 10)
            yield VECTORS[chunk.start : chunk.stop]


def test_vectors_are_computed_once(tmp_path: Path) -> None:
    first, again = Computer(), Computer()
    for computer in (first, again):
        np.testing.assert_array_equal(cached(tmp_path / "a", 25, computer), VECTORS)
    assert first.done == [0, 1, 2]
    assert again.done == []


def test_an_interrupted_computation_continues(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        cached(tmp_path, 25, Computer(dies_before=2))
    rest = Computer()
    np.testing.assert_array_equal(cached(tmp_path, 25, rest), VECTORS)
    assert rest.done == [2]


@pytest.mark.parametrize("size", [0, 5, 127, 128, 200, 250, 427])
def test_a_file_that_was_cut_off_is_completed(tmp_path: Path, size: int) -> None:
    cached(tmp_path, 25, Computer())
    whole = (tmp_path / "vectors.npy").read_bytes()
    assert len(whole) == 128 + 25 * 12
    (tmp_path / "vectors.npy").write_bytes(whole[:size])
    rest = Computer()
    with pytest.warns(DamagedCacheWarning, match=r"parts were damaged and are computed again"):
        np.testing.assert_array_equal(cached(tmp_path, 25, rest), VECTORS)
    assert len(rest.done) == (3 if size < 248 else 2 if size < 368 else 1)  # where the first two chunks end
    assert (tmp_path / "vectors.npy").read_bytes() == whole


def test_a_flipped_bit_is_noticed_wherever_it_is(tmp_path: Path) -> None:
    cached(tmp_path, 25, Computer())
    whole = (tmp_path / "vectors.npy").read_bytes()
    for place in range(0, len(whole), 7):
        damaged = bytearray(whole)
        damaged[place] ^= 4
        (tmp_path / "vectors.npy").write_bytes(damaged)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DamagedCacheWarning)
            np.testing.assert_array_equal(cached(tmp_path, 25, Computer()), VECTORS)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"num_samples": 25}', '{"digests": {}}'])
def test_a_damaged_record_means_that_all_is_computed_again(tmp_path: Path, content: str) -> None:
    cached(tmp_path, 25, Computer())
    (tmp_path / "chunks.json").write_text(content)
    again = Computer()
    with pytest.warns(DamagedCacheWarning):
        np.testing.assert_array_equal(cached(tmp_path, 25, again), VECTORS)
    assert again.done == [0, 1, 2]


def test_no_vector_is_trusted_without_its_digest(tmp_path: Path) -> None:
    cached(tmp_path, 25, Computer())
    record = json.loads((tmp_path / "chunks.json").read_text())
    del record["digests"]["1"]
    (tmp_path / "chunks.json").write_text(json.dumps(record))
    again = Computer()
    cached(tmp_path, 25, again)
    assert again.done == [1]


def test_a_second_process_waits_for_the_first_and_computes_nothing(tmp_path: Path) -> None:
    first, second, found = Computer(), Computer(), []
    with exclusive(tmp_path):  # as a process does that is about to fill the folder
        waiting = Thread(target=lambda: found.append(cached(tmp_path, 25, second)))
        waiting.start()
        waiting.join(0.3)
        assert waiting.is_alive()
        vector_cache._filled(tmp_path, 25, first)
    waiting.join(60)
    np.testing.assert_array_equal(found[0], VECTORS)
    assert not second.done


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot be written: .*set DIVIDEMIX_CACHE to another folder") as caught:
        cached(tmp_path / "file" / "a", 25, Computer())
    assert "\n" not in str(caught.value)
