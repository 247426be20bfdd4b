"""dividemix train, predict and export on the rows of a table."""

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from workshop import fail, succeed

import dividemix
from dividemix.cli import main
from dividemix.model import EXPORT_FORMATS
from dividemix.report.of_files import content_of_files
from dividemix.report.run_rows import run_rows


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table of 120 rows in the working directory: the label follows from one number and one category."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    size, colour = rng.normal(size=120), rng.choice(["red", "blue"], 120)
    is_big = size + (colour == "red") > 0.5
    sizes = [f"{value:.3f}" if i % 10 else "" for i, value in enumerate(size)]
    lines = [f"r{i},{sizes[i]},{colour[i]},{'big' if is_big[i] else 'small'}" for i in range(120)]
    Path("table.csv").write_text("\n".join(["name,size,colour,label", *lines]) + "\n")
    return tmp_path / "table.csv"


def predicted(*files: str) -> list[dict[str, str]]:
    """What predict writes."""
    assert main(["predict", "run", *files, "--out", "out.csv", "--overwrite"]) == 0
    return list(csv.DictReader(Path("out.csv").read_text().splitlines()))


def test_a_table_is_trained_and_new_rows_are_predicted(table: Path) -> None:
    succeed("table.csv", "--target", "label", "--key", "name", "--out", "run")
    issues = pd.read_csv("run/label_issues.csv")
    assert set(issues["path"]) == {f"r{i}" for i in range(120)}
    assert [issues.set_index("index").loc[7, "path"]] == ["r7"]
    rows = predicted("table.csv")
    labels = pd.read_csv("table.csv")["label"]
    assert np.mean([row["predicted_label"] for row in rows] == labels.to_numpy()) > 0.9
    Path("new.csv").write_text("colour,size\nred,3\ngreen,-3\n,\n")  # another order, a new category, missing values
    assert [row["predicted_label"] for row in predicted("new.csv")][:2] == ["big", "small"]
    model = dividemix.Model.from_pretrained("run")
    frame = pd.DataFrame({"size": [3, -3, None], "colour": ["red", "green", None]})
    for same in (frame, frame.to_dict("list"), frame.to_dict("records")):
        np.testing.assert_allclose(
            model.predict_proba(same)[:, 0], [float(row["prob_big"]) for row in predicted("new.csv")], atol=1e-5
        )
    assert model.predict({"size": 3, "colour": "red"}).tolist() == ["big"]


def test_labels_are_reviewed_and_corrected_by_the_key_of_their_row(table: Path) -> None:
    """The labels of two rows are exchanged: both are found, shown with their columns, and put right."""
    lines = table.read_text().splitlines()
    worst = [i for i, line in enumerate(lines) if ",red,big" in line and float(line.split(",")[1] or 0) > 1][:2]
    wrong = [line.replace("big", "small") if i in worst else line for i, line in enumerate(lines)]
    table.write_text("\n".join(wrong) + "\n")
    succeed("table.csv", "--target", "label", "--key", "name", "--out", "run")
    content = content_of_files(Path("run"))
    shown = run_rows(Path("run"), content)
    assert shown is not None
    by_key = dict(zip(content.paths or (), shown, strict=True))
    name, size, colour, _ = wrong[worst[0]].split(",")
    assert [cell[:2] for cell in by_key[name]["cells"]] == [["size", f"{float(size):.6g}"], ["colour", colour]]
    page = Path("run/report.html").read_text()
    assert '"kind":"row"' in page.replace(" ", "")
    assert main(["relabel", "table.csv", "--run", "run", "--accept_above", "0.5"]) == 0
    corrected = Path("table_corrected.csv").read_text().splitlines()
    assert all(corrected[i] == lines[i] for i in worst)


def test_a_program_that_was_exported_takes_a_number_for_each_column(table: Path) -> None:
    succeed("table.csv", "--target", "label", "--drop_columns", "name", "--out", "run")
    for kind in EXPORT_FORMATS:
        assert main(["export", "run", "--format", kind, "--out", f"model.{kind}"]) == 0  # it compares both, or fails


def test_mistakes_are_one_line(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no column 'lable'" in fail(capsys, ["train", "table.csv", "--target", "lable"])
    assert "has no meaning without --target" in fail(capsys, ["train", "table.csv", "--numeric", "size"])
    both = ["train", "table.csv", "--target", "label", "--text_column", "name"]
    assert "text_column are both given" in fail(capsys, both)
    assert "'colour' is numeric, but has" in fail(
        capsys, ["train", "table.csv", "--target", "label", "--numeric", "colour"]
    )
    assert "for rows name the labels by --target" in fail(capsys, ["train", "table.csv"])
    succeed("table.csv", "--target", "label", "--key", "name", "--out", "run")
    assert "its images are not files, which Label Studio needs" in fail(
        capsys, ["share", "run", "--to", "label-studio", "--all"]
    )
    Path("new.csv").write_text("size\n1\n")
    assert "no column 'colour', which the model needs" in fail(capsys, ["predict", "run", "new.csv"])
