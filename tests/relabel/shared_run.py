"""A folder of four images, and the directory of a finished run on it, written by hand: no training."""

import csv
import json
from pathlib import Path

from PIL import Image

CLASSES = ["cat", "dog", 'odd & "owl"']
ISSUES = '''\
index,path,is_label_issue,label_score,given_label,predicted_label,predicted_prob,clean_prob_1,clean_prob_2,loss_1,loss_2
0,cat/a b.png,True,0.01,cat,dog,0.99,0.1,0.3,4,5
1,cat/b.png,True,0.1,cat,"odd & ""owl""",0.8,0.1,0.1,3,3
3,"odd & ""owl""/d.png",True,0.2,"odd & ""owl""",dog,0.7,0.2,0.2,3,3
2,dog/c.png,False,0.9,dog,dog,0.9,0.9,0.9,0.1,0.1
'''
GIVEN = {"cat/a b.png": "cat", "cat/b.png": "cat", "dog/c.png": "dog", 'odd & "owl"/d.png': 'odd & "owl"'}


def make_run(folder: Path) -> Path:
    """The run directory `run` in a folder, next to `photos`, which it was trained on."""
    for number, path in enumerate(GIVEN):
        file = folder / "photos" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (40 * number, 0, 0)).save(file)
    run = folder / "run"
    (run / "model").mkdir(parents=True)
    (run / "label_issues.csv").write_text(ISSUES)
    (run / "config.yaml").write_text(f"format: 2\ndata: {json.dumps(str(folder / 'photos'))}\n")
    (run / "model" / "config.json").write_text(json.dumps({"classes": CLASSES}))
    return run


def labels_of(table: Path) -> dict[str, str]:
    """Path below photos/ -> label of a corrected table."""
    with table.open(newline="") as file:
        return {row["path"].removeprefix("photos/"): row["label"] for row in csv.DictReader(file)}
