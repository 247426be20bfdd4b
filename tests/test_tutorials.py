"""The commands of the tutorials run in their order, on tiny data with tiny networks. Oracle: what the pages promise."""

import csv
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dividemix.cli import main

DOCS = Path(__file__).parents[1] / "docs"
QUICK = {"--epochs": "2", "--warmup_epochs": "1", "--net_width": "2", "--batch_size": "8"}
ONLY_PLAIN = {"--warmup_epochs"}  # settings that ordinary training does not have


@pytest.fixture(autouse=True)
def _folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """photos/ with two images in wrong folders, careful/ for tests, new_photos/ without labels."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for i in range(48):
        image, label = rng.integers(0, 90, (12, 12), dtype=np.uint8), i % 3
        image[4 * label : 4 * label + 4] += 120
        given = ("cat", "dog", "owl")[(label + 1) % 3 if i < 2 else label]
        folder = Path("new_photos") if i > 44 else Path("careful" if i > 35 else "photos", given)
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(folder / f"{i:02}.png")


def commands_of(page: str) -> list[list[str]]:
    """The words of every command in the shell blocks of a page."""
    text = (DOCS / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("dividemix ")]
    return [shlex.split(line, comments=True)[1:] for line in lines]


def run(words: list[str]) -> None:
    """Run a command, a training in seconds; the settings of the page count where they are not about time."""
    if words[0] == "train":
        plain = "cross_entropy" in words
        for flag in ("--limit_train", *QUICK):
            if flag in words:
                del words[words.index(flag) : words.index(flag) + 2]
        words += [word for flag, value in QUICK.items() if not (plain and flag in ONLY_PLAIN) for word in (flag, value)]
        words += ["--limit_train", "60"] if "fashion" in words else []
    assert main(words) == 0, words


def decide(run_directory: Path) -> None:
    """corrections.csv as the report writes it: the first image is moved to the suggested class, or to another."""
    with (run_directory / "label_issues.csv").open(newline="") as file:
        first = next(csv.DictReader(file))
    new = next(name for name in ("cat", "dog") if name != first["given_label"])
    row = [first["index"], first["path"], first["given_label"], new, "choose"]
    with Path("corrections.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["index", "path", "given_label", "new_label", "action"], row])


@pytest.mark.slow
@pytest.mark.parametrize("page", ["tutorials/own_photographs.md", "how_to/repeat.md"])
def test_from_photographs_to_a_cleaned_folder(page: str) -> None:
    commands = commands_of(page)
    assert len(commands) >= 4
    for words in commands:
        if words[0] == "relabel":
            decide(next(Path("runs").iterdir()))
        run(words)
    cleaned = Path("photos_clean" if "own" in page else "photos2")
    old, new = ({path.relative_to(top) for path in top.rglob("*.png")} for top in (Path("photos"), cleaned))
    assert len(old - new) == len(new - old) == 1  # one image is in another class
    assert sum(path.is_dir() for path in cleaned.iterdir()) == 3
    if "own" in page:
        assert len(Path("predictions.csv").read_text().splitlines()) == 1 + 3


@pytest.mark.slow
def test_a_table_of_the_paper(capsys: pytest.CaptureFixture[str]) -> None:
    commands = commands_of("tutorials/paper_table.md")
    run_here = [words for words in commands if "mine:METHOD" not in words and "--seeds" not in words]
    assert len(commands) - len(run_here) == 2  # the whole table takes an hour; your own idea is yours
    for words in run_here:
        run(words)
    assert "accuracy" in capsys.readouterr().out
