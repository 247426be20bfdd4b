"""The page of a run. Oracles: a page rendered from the run's own files and data, and what the page's JSON holds."""

import base64
import csv
import errno
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from injected import OPENING, injected, refusing
from pictures import write_png
from PIL import Image
from toys import NUM_TEST, NUM_TRAIN, SETTINGS, toy_arrays, toy_job, trained, tree

import dividemix
from dividemix.errors import InputError
from dividemix.judging.records import ExpectedIssues
from dividemix.planning.job import Job
from dividemix.report.content import expected_words
from dividemix.report.of_run import _apply, page_content, page_seconds, write_report
from dividemix.report.page import render
from dividemix.report.shown import image
from dividemix.report.thumbnails import encode, encode_file
from dividemix.runs.run import Run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A finished run without a page."""
    run = Run.create(tmp_path / "run", toy_job(tmp_path, method="robust", holdout=0.2))
    run.train()
    return run


def shown(page: Path) -> dict[str, Any]:
    """The JSON that the page carries."""
    found = re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', page.read_text(), re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def test_the_page_is_the_one_rendered_from_the_run_and_no_other_file_changes(run: Run) -> None:
    folder = run.directory.path
    before = tree(folder)
    assert "report.html" not in before
    assert write_report(run) == folder / "report.html"
    images = run.material.everything.pixels(np.arange(NUM_TRAIN))
    expected = render(page_content(run), lambda i: image(encode(images[i])))
    assert tree(folder) == before | {"report.html": expected.encode()}


def test_the_page_of_a_run_that_was_loaded_is_the_same(run: Run) -> None:
    first = write_report(run).read_bytes()
    assert write_report(Run.load(run.directory.path)).read_bytes() == first


def test_the_page_names_the_command_that_applies_the_corrections(run: Run) -> None:
    """Quoted for a shell, with columns that have other names than usual; none for data that cannot be corrected."""
    assert page_content(run).apply == f"dividemix relabel {run.job.data} corrections.csv"
    for changes, apply in (
        ({"data": "my data/a.csv", "label_column": "kind"}, "'my data/a.csv' corrections.csv --label_column kind"),
        ({"data": "a.tsv", "text_column": "words"}, "a.tsv corrections.csv --text_column words"),
        ({"data": "a.csv", "target": "risk", "key": "id"}, "a.csv corrections.csv --target risk --key id"),
        ({"data": "fashion"}, None),
        ({"data": "a.npy"}, None),
        ({"data": "a.parquet", "text_column": "words"}, None),
    ):
        job = Job.of(run.job.values() | changes)
        assert _apply(job) == (apply and f"dividemix relabel {apply}")


def test_the_page_of_a_program_s_data_names_the_copy_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Oracle: the page after the run was loaded; both name a file that exists."""
    monkeypatch.chdir(tmp_path)
    arrays = toy_arrays()
    dividemix.train(arrays["x_train"], arrays["y_train"], out="run", progress=False, **SETTINGS)
    first = (tmp_path / "run" / "report.html").read_bytes()
    assert shown(write_report(Run.load("run")))["apply"] == "dividemix relabel run/data.npz corrections.csv"
    assert (tmp_path / "run" / "report.html").read_bytes() == first


def test_the_page_shows_what_the_files_of_the_run_have(run: Run) -> None:
    page, folder = shown(write_report(run)), run.directory.path
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    summary = json.loads((folder / "summary.json").read_text())
    assert [row["epoch"] for row in page["rows"]] == [1, 2, 3, 4]
    for shown_row, row in zip(page["rows"], rows, strict=True):
        assert shown_row["phase"] == row["phase"]
        assert shown_row["selects"] == row["selects"] == (row["phase"] == "mix")
        assert shown_row["test_acc"] == pytest.approx(row["test_acc"], rel=1e-3)
        assert shown_row["val_acc"] == pytest.approx(row["val_acc"], rel=1e-3)
        assert ("noise_rate" in shown_row) == (row["phase"] == "mix")
        if "noise_rate" in shown_row:
            assert shown_row["noise_rate"] == pytest.approx(row["figures"]["noise_rate"], rel=1e-3)
    divided = [(row["epoch"], net) for row in rows if "loss_histograms" in row for net in (0, 1)]
    assert [(division["epoch"], division["net"]) for division in page["divisions"]] == divided != []
    issues = list(csv.DictReader((folder / "label_issues.csv").open(encoding="utf-8")))
    assert page["num_samples"] == len(issues) == NUM_TRAIN
    assert page["num_issues"] == sum(row["is_label_issue"] == "True" for row in issues)
    assert {sample["index"] for sample in page["suspects"]} == set(range(NUM_TRAIN))
    assert page["noise_rate"] == pytest.approx(summary["noise_rate"], rel=1e-3)
    assert page["kept_epoch"] == summary["kept_epoch"]
    facts = dict(page["facts"])
    assert facts["Method"] == "robust, 4 epochs, seed 1"
    assert facts["Images"] == "8 x 8 pixels, grey"
    assert facts["Test accuracy"] == f"{summary['kept_acc']:.2f} % ({NUM_TEST} images)"
    assert facts["Noise that was added"] == f"symmetric:0.4: {summary['noise']['true']:.1%} of labels corrupted"


@pytest.mark.parametrize("method", ["cross_entropy", "dividemix", "robust"])
def test_every_method_has_a_page(tmp_path: Path, method: str) -> None:
    run = trained(tmp_path / "run", toy_job(tmp_path, method=method))
    assert dict(shown(run.directory.path / "report.html")["facts"])["Method"].startswith(f"{method}, 4 epochs")


@pytest.mark.parametrize("num_epochs", [0, 3])
def test_a_run_that_is_not_finished_has_no_page(tmp_path: Path, num_epochs: int) -> None:
    run = trained(tmp_path / "run", toy_job(tmp_path), num_epochs=num_epochs)
    before = tree(tmp_path / "run")
    with pytest.raises(InputError, match="run: the run is not finished; train it to its end first") as caught:
        write_report(run)
    assert "\n" not in str(caught.value)
    assert tree(tmp_path / "run") == before


def test_photographs_are_shown_whole_from_their_files_with_a_link(tmp_path: Path) -> None:
    """Not as the small squares that were trained on."""
    photos = tmp_path / "photos"
    for i in range(24):
        name = f"{('cat', 'dog')[i % 2]}/{i}.png"
        (photos / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (600, 300), (10 * i, 100, 200)).save(photos / name)
    job = toy_job(tmp_path, data=str(photos), noise="none", image_size=8, batch_size=4)
    run = trained(tmp_path / "runs" / "one", job)
    page = shown(run.directory.path / "report.html")
    with injected(refusing(photos, 0, errno.EMFILE, OPENING)), pytest.raises(InputError, match="Too many open files"):
        write_report(run)
    assert shown(run.directory.path / "report.html") == page
    assert len(page["suspects"]) == 24
    for sample in page["suspects"]:
        kind, _, content = sample["shown"]["small"].partition(",")
        picture = Image.open(io.BytesIO(base64.b64decode(content)))
        assert (kind, picture.size) == ("data:image/webp;base64", (256, 128))
        assert sample["shown"]["original"] == f"./../../photos/{sample['path']}"
        number = int(Path(sample["path"]).stem)
        red = np.asarray(picture.convert("RGB"))[..., 0]
        assert abs(int(red.mean()) - 10 * number) < 6


def test_the_time_of_a_page_of_photographs_is_foreseen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clock of the test: each photograph takes 2 s; six are made, and 24 are shown."""
    photos, now, made = tmp_path / "photos", [0.0], []
    for i in range(24):
        write_png(photos / ("cat", "dog")[i % 2] / f"{i}.png", i, 30, 60)
    run = Run.create(tmp_path / "run", toy_job(tmp_path, data=str(photos), noise="none", image_size=8, batch_size=4))

    def slow(file: Any, longest: int) -> bytes:
        now[0] += 2.0
        made.append(file)
        return encode_file(file, longest)

    monkeypatch.setattr("dividemix.report.pictures.encode_file", slow)
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    assert (page_seconds(run), len(made)) == (48.0, 6)
    monkeypatch.setattr("dividemix.report.of_run.MAX_SUSPECTS", 10)
    assert page_seconds(run) == 20.0


def test_photographs_that_python_names_by_their_paths_are_shown_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that changed since, or that only has the name, is not shown: the pixels that were trained on are."""
    monkeypatch.chdir(tmp_path)
    for i in range(24):
        Image.new("RGB", (600, 300), (10 * i, 100, 200)).save(f"{i}.png")
    settings = {name: SETTINGS[name] for name in ("net", "net_width", "device")}
    run = dividemix.train(
        [f"{i}.png" for i in range(24)],
        [i % 2 for i in range(24)],
        image_size=8,
        epochs=1,
        method="cross_entropy",
        batch_size=4,
        progress=False,
        out="run",
        **settings,
    )
    Image.new("RGB", (600, 300), "white").save("3.png")
    for loaded in (run, Run.load("run")):
        found = {sample["index"]: sample["shown"] for sample in shown(write_report(loaded))["suspects"]}
        assert found[5]["original"] == "./../5.png"
        assert found[3]["original"] is None
        for index, size in ((5, (256, 128)), (3, (8, 8))):
            content = base64.b64decode(found[index]["small"].partition(",")[2])
            assert Image.open(io.BytesIO(content)).size == size


def test_expected_numbers_are_sentences() -> None:
    expected: ExpectedIssues = {
        "num_wrong": 2131.6,
        "low": 1530.2,
        "high": 2960.0,
        "is_calibrated": True,
        "precision_at": {"10": 1.0, "100": 0.994, "flagged": 0.861},
    }
    least = (  # our estimates are more often too small than too large (LOG.md), so no upper bound is promised
        "At least about 1,530 labels are probably wrong, more likely about 2,132."
        " Wrong labels that look right to the networks are not counted, so there may be more."
    )
    assert expected_words(expected) == (
        f"{least} 86\u00a0% of the flagged labels are expected to be wrong, 99\u00a0% of the 100 most suspicious ones."
    )
    expected["precision_at"] = {"10": 1.0, "100": 0.4, "flagged": 0.9}  # fewer than 100 are flagged
    assert expected_words(expected).endswith("90\u00a0% of the flagged labels are expected to be wrong.")
    expected["precision_at"] = {"10": 0.2}
    assert expected_words(expected) == least
    assert expected_words({"is_calibrated": False}) == (  # nothing is known: no number is promised
        "How many labels are wrong is not estimated:"
        " that needs at least 100 held-out samples, and classes that the networks have learned."
    )
