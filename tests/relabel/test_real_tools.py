"""Round trips through the other tools themselves: decisions made there come back, none lost, none invented.

Oracle: the real packages. Each test is skipped where its package is missing; tests/relabel/test_share.py always runs.
FiftyOne needs a MongoDB: where its own does not start, FIFTYONE_DATABASE_URI names one that runs.
"""

import json
import re
import uuid
from pathlib import Path
from typing import Any

import numpy
import pytest
from shared_run import CLASSES, GIVEN, labels_of, make_run

from dividemix.relabel.decisions import read_decisions
from dividemix.relabel.relabel import relabel
from dividemix.relabel.share import share

OWL = CLASSES[2]
NEW = GIVEN | {"cat/a b.png": "dog", "cat/b.png": OWL}  # what is decided below: sample 0 and 1 change, 3 is kept


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    return make_run(tmp_path)


def check(run: Path, export: Path) -> None:
    """The export has three decisions: two changes and a label that is kept."""
    assert sorted((one.index, one.action) for one in read_decisions(export)) == [
        (0, "accept"),
        (1, "accept"),
        (3, "keep"),
    ]
    done = relabel(run.parent / "photos", export, run.parent / "new.csv", overwrite=True)
    assert (done.num_changed, done.num_kept, done.num_skipped) == (2, 1, 0)
    assert labels_of(run.parent / "new.csv") == NEW


def test_label_studio(run: Path, tmp_path: Path) -> None:
    converter = pytest.importorskip("label_studio_sdk.converter", reason="label-studio-sdk is not installed")
    interfaces = pytest.importorskip("label_studio_sdk.label_interface")
    (file, config), _ = share(run, "label-studio", every=True)
    tasks = json.loads(file.read_text())
    interface = interfaces.LabelInterface(config.read_text())
    interface.validate()
    for task in tasks:
        assert interface.validate_task({"data": task["data"]})
        assert interface.validate_prediction(task["predictions"][0])

    choice = interface.get_control("label")
    for number, (task, label) in enumerate(zip(tasks, ["dog", OWL, OWL, None], strict=True), start=1):
        annotation = {"id": number, "completed_by": 1, "was_cancelled": False, "result": []}
        if label is not None:
            annotation["result"] = [choice.label(label)._dict()]
        task |= {"id": number, "annotations": [] if label is None else [annotation]}
        assert all(interface.validate_annotation(one) for one in task["annotations"])
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    made = converter.Converter(config.read_text(), str(tmp_path), download_resources=False)
    for kind in ("JSON", "JSON_MIN"):
        made.convert(str(tmp_path / "tasks.json"), str(tmp_path / kind), kind, is_dir=False)
        (export,) = (tmp_path / kind).glob("*.json")
        check(run, export)


def test_fiftyone(run: Path, tmp_path: Path) -> None:
    fiftyone = pytest.importorskip("fiftyone", reason="fiftyone is not installed")
    (file,), _ = share(run, "fiftyone")
    try:
        dataset = fiftyone.Dataset.from_json(str(file), name=f"dividemix-{uuid.uuid4()}")
    except fiftyone.core.config.FiftyOneConfigError:
        pytest.skip("FiftyOne has no database here")
    try:
        assert dataset.count() == 4
        assert dataset.match_tags("label_issue").count() == 3
        assert dataset.default_classes == CLASSES
        worst = dataset.sort_by("mistakenness", reverse=True).first()
        assert worst["prediction"].label == OWL
        assert worst["prediction"].confidence == 0.8
        dataset.match(fiftyone.ViewField("index") == 0).tag_samples("accept")
        dataset.match(fiftyone.ViewField("index") == 3).tag_samples("keep")
        sample = dataset.match(fiftyone.ViewField("index") == 1).first()
        sample["ground_truth"].label = OWL
        sample.save()
        dataset.write_json(str(tmp_path / "export.json"))
        check(run, tmp_path / "export.json")
        dataset.export(export_dir=str(tmp_path / "folder"), dataset_type=fiftyone.types.FiftyOneDataset)
        check(run, tmp_path / "folder" / "samples.json")
    finally:
        dataset.delete()


def test_argilla(run: Path, tmp_path: Path) -> None:
    argilla = pytest.importorskip("argilla", reason="argilla is not installed")
    files = pytest.importorskip("argilla.records._io").JsonIO  # what dataset.records.to_json and from_json use
    (file,), _ = share(run, "argilla", every=True)
    records = files._records_from_json(file)
    assert [record.suggestions["label"].value for record in records] == ["dog", OWL, "dog", "dog"]
    user = uuid.uuid4()
    for record, label in zip(records, ["dog", OWL, OWL, None], strict=True):
        if label is not None:
            record.responses.add(argilla.Response("label", label, user_id=user, status="submitted"))
            record._model.status = "completed"  # as the server does
    check(run, files.to_json(records, tmp_path / "export.json"))


def test_datasets(run: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    (file,), _ = share(run, "datasets")
    loaded = datasets.Dataset.from_parquet(str(file), cache_dir=str(tmp_path / "cache"))
    assert loaded.features["corrected_label"].names == CLASSES
    assert loaded[0]["image"].size == (8, 8)
    assert loaded["is_label_issue"][:] == [True, True, False, True]
    new = {0: "dog", 1: OWL, 3: OWL}

    def decide(row: dict[str, Any]) -> dict[str, Any]:
        label = new.get(row["index"])
        return {"corrected_label": None if label is None else loaded.features["label"].str2int(label)}

    decided = loaded.map(decide)
    decided.to_parquet(str(tmp_path / "export.parquet"))
    check(run, tmp_path / "export.parquet")
    decided.save_to_disk(str(tmp_path / "saved"))
    check(run, tmp_path / "saved")
    decided.select([3, 1, 0]).save_to_disk(str(tmp_path / "part"), num_shards=2)
    check(run, tmp_path / "part")


def test_datalab(run: Path, tmp_path: Path) -> None:
    pytest.importorskip("datasets", reason="Datalab needs datasets")
    cleanlab = pytest.importorskip("cleanlab", reason="cleanlab is not installed")
    pandas = pytest.importorskip("pandas")
    (file,), _ = share(run, "datalab")
    ours = pandas.read_csv(file, index_col="index")
    lab = cleanlab.Datalab(
        {"label": [CLASSES.index(label) for label in GIVEN.values()] * 5}, label_name="label", verbosity=0
    )
    probs = numpy.full((20, 3), 0.05) + 0.85 * numpy.eye(3)[[1, 2, 1, 1] * 5]
    lab.find_issues(pred_probs=probs, issue_types={"label": {}})
    theirs = lab.get_issues("label")
    assert list(ours.columns[: len(theirs.columns)]) == list(theirs.columns)
    assert (ours.is_label_issue.dtype, ours.label_score.dtype) == (
        theirs.is_label_issue.dtype,
        theirs.label_score.dtype,
    )

    ours["corrected_label"] = ours["corrected_label"].astype(object)
    ours.loc[[0, 1, 3], "corrected_label"] = ["dog", OWL, OWL]
    ours.to_csv(tmp_path / "export.csv")
    check(run, tmp_path / "export.csv")


PAGE = Path(__file__).parents[2] / "docs" / "how_to" / "other_tools.md"
BLOCKS = {
    package: re.findall(
        rf"^```python {package}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    for package in ("fiftyone", "datasets", "cleanlab")
}


@pytest.mark.parametrize("package", BLOCKS)
def test_the_examples_of_the_page_run(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    pytest.importorskip(package, reason=f"{package} is not installed")
    run = tmp_path / "runs" / "photos-robust_history-seed1"
    run.parent.mkdir()
    make_run(tmp_path).rename(run)
    numpy.save(run / "pred_probs.npy", numpy.full((4, 3), 1 / 3))
    names = {"fiftyone": "labels.json", "datasets": "issues.parquet"}
    monkeypatch.chdir(tmp_path)
    if package in names:
        share(run, package, Path(names[package]))
    assert BLOCKS[package]
    try:
        for block in BLOCKS[package]:
            exec(compile(block, f"{PAGE.name}, {package}", "exec"), {})
    except Exception as error:
        if type(error).__name__ == "FiftyOneConfigError":
            pytest.skip("FiftyOne has no database here")
        raise
    if package in ("fiftyone", "datasets"):
        (export,) = tmp_path.glob("export.*")
        assert [one.action for one in read_decisions(export)] == ["accept"]
