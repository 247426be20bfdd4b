"""The quick part of the laboratory: a few attempts of each kind. `python tests/faults/laboratory.py` makes all."""

import subprocess
import sys
from pathlib import Path

import pytest

from dividemix.model import EXPORT_FORMATS

# Every so many attempts, of scenarios with this text in their names.
QUICK = {
    "kills": ("train short", 29),
    "refusals": ("resume command", 31),
    "damage": ("s.csv", 20),
    "fuzzing": ("settings", 15),
    "crowds": ("one file", 8),
}


def test_every_format_of_the_model_is_disturbed() -> None:
    scenarios = Path(__file__).with_name("scenarios.py").read_text(encoding="utf-8")
    assert [name for name in EXPORT_FORMATS if f'"export {name}"' not in scenarios] == []


@pytest.mark.slow
@pytest.mark.parametrize("part", QUICK)
def test_a_part_of_the_laboratory_holds(part: str) -> None:
    """Oracle: the files of undisturbed calls, and the table's own count of what was tried."""
    only, step = QUICK[part]
    laboratory = Path(__file__).with_name("laboratory.py")
    command = [sys.executable, str(laboratory), part, "--only", only, "--step", str(step)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (total,) = (line for line in done.stdout.splitlines() if line.startswith("| all "))
    _, _, _, tried, held, _, _ = total.replace(",", "").split("|")
    assert int(tried) == int(held) >= 4
