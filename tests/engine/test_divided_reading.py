"""Images that processes read together. Oracle: the array that the images are from."""

from pathlib import Path

import divided_readings as case
import pytest
from together import run_together


def test_one_process_reads_all() -> None:
    found = case.read_all()
    assert found["images"] == [case.PICTURES[batch].tolist() for batch in case.BATCHES]
    assert found["own"] == [index for batch in case.BATCHES for index in batch]


@pytest.mark.slow
def test_each_of_three_processes_gets_all_images_and_reads_its_share(tmp_path: Path) -> None:
    expected = case.read_all()
    by_each = run_together("divided_readings:read_all", 3, tmp_path)
    assert all(of_process["images"] == expected["images"] for of_process in by_each)
    read = [index for of_process in by_each for index in of_process["own"]]
    assert sorted(read) == sorted(expected["own"])  # every image once
    assert max(len(of_process["own"]) for of_process in by_each) == 3 + 1 + 0 + 1 + 2
