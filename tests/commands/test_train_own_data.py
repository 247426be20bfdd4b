"""Layouts of data that people have, from the command line: what is trained, and what is said about it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from toys import SETTINGS
from workshop import fail, flags_of, succeed

from dividemix.cli import main

pytestmark = pytest.mark.usefixtures("workshop")

QUICK = [*flags_of(SETTINGS | {"epochs": 2, "warmup_epochs": 1}), "--out", "run"]


def draw(path: str, number: int, mode: str = "L", side: int = 8) -> None:
    """A picture that depends on the number alone."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    levels = np.random.default_rng(number).integers(0, 256, (side, side), dtype=np.uint8)
    Image.fromarray(levels).convert(mode).save(path)


def summary() -> Any:
    return json.loads(Path("run/summary.json").read_text())


def test_a_table_in_a_project_and_images_elsewhere() -> None:
    for number in range(8):
        draw(f"disk/{number}.png", number)
    Path("project").mkdir()
    rows = [f"{number}.png,{'ab'[number % 2]}\n" for number in range(8)]
    Path("project/labels.csv").write_text("path,label\n" + "".join(rows))
    succeed("project/labels.csv", "--image_root", "disk", *QUICK)
    assert summary()["num_skipped"] == 0
    Path("disk").rename("moved")
    assert main(["train", "--resume", "--out", "run", "--image_root", "moved"]) == 0


def test_an_image_root_for_a_folder_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    draw("photos/a/1.png", 1)
    draw("photos/b/1.png", 2)
    assert "image_root photos has no meaning for photos" in fail(
        capsys, ["train", "photos", "--image_root", "photos", *QUICK]
    )


def test_the_folder_above_is_not_trained_on(capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(4):
        draw(f"photos/{'ab'[number % 2]}/{number}.png", number)
    assert fail(capsys, ["train", ".", *QUICK]).endswith("seem to be the classes: give photos as data\n")


def test_what_a_few_odd_images_cause_is_said_and_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(120):
        draw(f"photos/{'ab'[number % 2]}/{number}.png", number, "RGB" if number == 7 else "L", 9 if number == 8 else 8)
    succeed("photos", *QUICK)
    notes = [
        "grey images: 119 of 120 are; 1 colour image is converted to grey",
        "8 x 8 pixels: 119 of 120 images; 1 other is resized",
    ]
    printed = capsys.readouterr().out.splitlines()
    assert all(note in printed for note in notes)
    assert summary()["notes"] == json.loads(Path("run/notes.json").read_text()) == notes
