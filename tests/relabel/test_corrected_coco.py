"""Corrections go back to the annotation file. Oracle: the file before, changed by hand."""

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from toys import FLAGS

from dividemix.cli import main
from dividemix.errors import InputError
from dividemix.relabel.relabel import relabel

HEADER = "index,path,given_label,new_label,action\n"


@pytest.fixture
def annotations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Two images with twelve boxes each, in a.json: bright ones are cats."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    boxes = []
    for image in (1, 2):
        pixels = rng.integers(0, 100, (30, 40, 3), dtype=np.uint8)
        for number in range(12):
            left, top = 10 * (number % 4), 10 * (number // 4)
            pixels[top : top + 10, left : left + 10] += 120 * (number % 2)
            boxes.append(
                {
                    "id": 100 * image + number,
                    "image_id": image,
                    "category_id": (7, 3)[number % 2],
                    "bbox": [left, top, 10, 10],
                    "segmentation": [[1.5, 2.5]],
                }
            )
        Image.fromarray(pixels).save(f"{image}.png")
    content = {
        "info": {"description": "größe"},
        "images": [{"id": image, "file_name": f"{image}.png", "license": 1} for image in (1, 2)],
        "categories": [{"id": 7, "name": "dog", "supercategory": "animal"}, {"id": 3, "name": "cat"}],
        "annotations": boxes,
    }
    Path("a.json").write_text(json.dumps(content))
    return content


def test_only_categories_change_and_deleted_boxes_go(annotations: dict[str, Any]) -> None:
    rows = [
        "0,1.png#100,dog,cat,accept",
        "1,1.png#101,cat,cat,keep",
        "2,1.png#102,dog,,delete",
        "13,2.png#201,cat,,skip",
    ]
    Path("corrections.csv").write_text(HEADER + "\n".join(rows) + "\n")
    done = relabel(Path("a.json"), Path("corrections.csv"), Path("b.json"))
    assert (done.num_changed, done.num_kept, done.num_deleted, done.num_skipped) == (1, 1, 1, 1)
    expected = copy.deepcopy(annotations)
    expected["annotations"][0]["category_id"] = 3
    del expected["annotations"][2]
    assert json.loads(Path("b.json").read_text()) == expected


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("0,1.png#100,dog,owl,choose", "new_label 'owl' is not a category of a.json"),
        ("0,1.png#100,cat,dog,choose", "given_label is 'cat', but a.json has"),
        ("0,1.png#999,dog,cat,choose", "a.json has no path '1.png#999'"),
    ],
)
def test_what_does_not_fit_is_refused(annotations: dict[str, Any], row: str, words: str) -> None:
    Path("corrections.csv").write_text(HEADER + row + "\n")
    with pytest.raises(InputError, match=words):
        relabel(Path("a.json"), Path("corrections.csv"), Path("b.json"))
    assert not Path("b.json").exists()


def test_the_whole_way(annotations: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    """Train on the boxes, share them as a table, decide, correct the annotation file, and read it again."""
    assert main(["train", "a.json", "--out", "run", "--image_size", "8", *FLAGS]) == 0
    assert main(["share", "run", "--to", "datasets", "--out", "issues.parquet"]) == 0
    assert main(["share", "run", "--to", "datalab", "--out", "issues.csv"]) == 0
    lines = Path("issues.csv").read_text().splitlines()
    assert len(lines) == 25
    lines[1] += "cat"  # sample 0, a dog
    Path("issues.csv").write_text("\n".join(lines) + "\n")
    assert main(["relabel", "a.json", "issues.csv"]) == 0
    new = json.loads(Path("a_corrected.json").read_text())
    changed = [a["id"] for a, b in zip(annotations["annotations"], new["annotations"], strict=True) if a != b]
    assert changed == [100]
    capsys.readouterr()
