"""Work shared by processes. The oracle is one process that computes everything itself."""

from pathlib import Path
from typing import Any

import pytest
from shared_trainings import train_every_method
from together import run_together


@pytest.mark.slow
def test_every_method_trains_as_one_process_does(tmp_path: Path) -> None:
    by_one = train_every_method()
    by_each = run_together("shared_trainings:train_every_method", 3, tmp_path)  # so that shares are uneven
    for of_process in by_each:
        assert of_process.keys() == by_one.keys()
        for name, expected in by_one.items():
            assert of_process[name]["draws"] == expected["draws"], name
            assert _numbers(of_process[name]) == pytest.approx(_numbers(expected), rel=1e-6, abs=1e-7), name


def _numbers(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [number for key in sorted(value) for number in _numbers(value[key])]
    if isinstance(value, list):
        return [number for each in value for number in _numbers(each)]
    return [float(value)]
