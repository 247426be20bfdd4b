"""Files for other tools. Oracle: the tools' documented schemas, written out here, and decisions made by hand in them.

tests/relabel/test_real_tools.py does the same with the tools themselves, where they are installed.
"""

import csv
import json
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared_run import CLASSES, GIVEN, labels_of, make_run

from dividemix.errors import InputError
from dividemix.relabel.decisions import read_decisions
from dividemix.relabel.relabel import relabel
from dividemix.relabel.returned import Decision, correction
from dividemix.relabel.share import share
from dividemix.relabel.tools import TOOLS, Tool, listed

OWL = CLASSES[2]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path)


def shared_json(run: Path, tool: str, **options: Any) -> Any:
    files, _ = share(run, tool, **options)
    return json.loads(files[0].read_text())


def applied(run: Path, export: Path) -> tuple[dict[str, str], tuple[int, ...]]:
    """The labels after the decisions of an export, and how many changed, were kept, skipped, deleted, ambiguous."""
    out = run.parent / "new.csv"
    done = relabel(run.parent / "photos", export, out, overwrite=True)
    return labels_of(out), (
        done.num_changed,
        done.num_kept,
        done.num_skipped,
        done.num_deleted,
        done.num_ambiguous,
    )


def saved(run: Path, content: Any, name: str = "export.json") -> Path:
    file = run.parent / name
    file.write_text(json.dumps(content))
    return file


def test_names_in_a_sentence() -> None:
    assert [listed(names, "or") for names in (["a"], ["a", "b"], ["a", "b", "c"])] == ["a", "a or b", "a, b or c"]


@pytest.mark.parametrize("tool", TOOLS)
def test_what_nobody_decided_changes_nothing(run: Path, tool: str) -> None:
    (file, *_), _ = share(run, tool, every=True)
    if file.suffix == ".json":
        content = json.loads(file.read_text())
        for task in content if tool == "label-studio" else []:
            task["annotations"] = []  # as an export has it
        file = saved(run, content)
    assert read_decisions(file) == []
    assert applied(run, file) == (GIVEN, (0, 0, 0, 0, 0))


# A tool with an export that is not JSON


def test_a_tool_reads_the_export_of_its_own_extension(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool is one entry: no other module knows its extension."""
    module = ModuleType("lines_of_json")
    module.is_export = lambda content: content.startswith(b'{"index"')  # type: ignore[attr-defined]
    module.decisions = lambda file, content: [  # type: ignore[attr-defined]
        correction(f"{file}: line {number}", sample, [Decision(label=sample["new"])])
        for number, sample in enumerate(map(json.loads, content.splitlines()), start=1)
    ]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    tool = Tool(title="Lines", write="none:none", flagged_only=True, export=module.__name__, extension=".jsonl")
    monkeypatch.setitem(TOOLS, "lines", tool)
    file = run.parent / "export.JSONL"
    file.write_text('{"index": 0, "path": "cat/a b.png", "given_label": "cat", "new": "dog"}\n')
    assert applied(run, file) == (GIVEN | {"cat/a b.png": "dog"}, (1, 0, 0, 0, 0))
    file.write_text("[]\n")
    with pytest.raises(InputError, match=r"Argilla or the \.jsonl export of Lines$"):
        read_decisions(file)


# Label Studio


def annotated(task: dict[str, Any], *people: Any) -> dict[str, Any]:
    """A task of an export. A person is a class, None for cancelled, or a pair of another control and its choice."""

    def result(control: str, choice: str) -> dict[str, Any]:
        return {"from_name": control, "to_name": "image", "type": "choices", "value": {"choices": [choice]}}

    def annotation(person: Any) -> dict[str, Any]:
        if person is None:
            return {"was_cancelled": True, "result": []}
        pairs = [("label", person)] if isinstance(person, str) else [("label", "dog"), person]
        return {"was_cancelled": False, "result": [result(*pair) for pair in pairs]}

    return task | {"annotations": [annotation(person) for person in people]}


def test_label_studio_gets_flagged_samples_with_suggestions(run: Path) -> None:
    files, number = share(run, "label-studio")
    assert [file.name for file in files] == ["label-studio.json", "label-studio.xml"]
    tasks = json.loads(files[0].read_text())
    assert number == len(tasks) == 3
    first = tasks[0]
    assert first["data"]["image"] == "/data/local-files/?d=cat/a%20b.png"
    assert [unquote(task["data"]["image"]).partition("=")[2] for task in tasks] == [
        task["data"]["path"] for task in tasks
    ]
    assert {name: first["data"][name] for name in ("index", "path", "given_label")} == {
        "index": 0,
        "path": "cat/a b.png",
        "given_label": "cat",
    }
    (prediction,) = first["predictions"]
    assert prediction["score"] == 0.99
    (result,) = prediction["result"]
    interface = ElementTree.fromstring(files[1].read_text())
    controls = {tag.get("name"): [choice.get("value") for choice in tag] for tag in interface.iter("Choices")}
    assert controls == {"label": CLASSES, "decision": ["delete", "ambiguous"]}
    assert result["value"] == {"choices": ["dog"]}
    assert result["from_name"] in controls
    assert interface.find("Image").get("name") == result["to_name"]  # type: ignore[union-attr]
    assert all(tag.get("toName") == "image" for tag in interface.iter("Choices"))


def test_a_label_studio_export_decides_what_its_annotators_did(run: Path) -> None:
    tasks = shared_json(run, "label-studio", every=True)
    people = ["dog", OWL, None, ("decision", "delete")]  # of samples 0, 1, 3, 2: accepted, accepted, cancelled, deleted
    export = [annotated(task, person) for task, person in zip(tasks, people, strict=True)]
    decided = read_decisions(saved(run, export))
    assert [(one.index, one.action) for one in decided] == [(0, "accept"), (1, "accept"), (3, "skip"), (2, "delete")]
    expected = GIVEN | {"cat/a b.png": "dog", "cat/b.png": OWL}
    del expected["dog/c.png"]
    assert applied(run, saved(run, export)) == (expected, (2, 0, 1, 1, 0))


def test_annotators_who_disagree_decide_nothing_unless_one_is_the_ground_truth(run: Path) -> None:
    first, second, third = shared_json(run, "label-studio")
    final = annotated(third, "cat", "dog")
    final["annotations"][1]["ground_truth"] = True
    export = [annotated(first, "cat", "dog"), annotated(second, "dog", "dog"), final]
    assert [one.action for one in read_decisions(saved(run, export))] == ["skip", "choose", "accept"]


def test_a_label_studio_export_in_the_short_form(run: Path) -> None:
    first, second, third = (task["data"] for task in shared_json(run, "label-studio"))
    (_, _, _, fourth) = (task["data"] for task in shared_json(run, "label-studio", every=True, overwrite=True))
    export = [
        fourth | {"id": 4, "annotator": None, "annotation_id": None},  # a task that nobody has annotated
        first | {"id": 1, "label": "dog", "annotator": 1, "annotation_id": 7},
        second | {"id": 2, "label": "cat", "annotator": 1, "annotation_id": 8},
        third | {"id": 3, "label": "dog", "decision": "ambiguous", "annotator": 1, "annotation_id": 9},
    ]
    assert applied(run, saved(run, export)) == (GIVEN | {"cat/a b.png": "dog"}, (1, 1, 0, 0, 1))


def test_images_may_be_on_a_server(run: Path) -> None:
    (first, *_) = shared_json(run, "label-studio", image_url="https://host/photos/")
    assert first["data"]["image"] == "https://host/photos/cat/a%20b.png"


# FiftyOne


def test_fiftyone_gets_every_sample_with_both_labels(run: Path) -> None:
    content = shared_json(run, "fiftyone")
    assert content["default_classes"] == CLASSES
    first, last = content["samples"][0], content["samples"][3]
    assert Path(first["filepath"]).is_file()
    assert first["ground_truth"] == {"_cls": "Classification", "tags": [], "label": "cat"}
    assert first["prediction"] == {"_cls": "Classification", "tags": [], "label": "dog", "confidence": 0.99}
    assert first["mistakenness"] == pytest.approx(0.8)
    assert (first["tags"], last["tags"]) == (["label_issue"], [])
    assert first.keys() == content["sample_fields"].keys()


def test_fiftyone_decides_by_labels_and_tags(run: Path) -> None:
    content = shared_json(run, "fiftyone")
    samples = content["samples"]
    samples[0]["tags"].append("accept")
    samples[1]["ground_truth"]["label"] = "dog"
    samples[2]["tags"].append("keep")
    samples[3]["tags"].append("ambiguous")
    expected = GIVEN | {"cat/a b.png": "dog", "cat/b.png": "dog"}
    assert applied(run, saved(run, content)) == (expected, (2, 1, 0, 0, 1))


def test_a_sample_with_two_decisions_is_refused(run: Path) -> None:
    content = shared_json(run, "fiftyone")
    content["samples"][1]["tags"] += ["keep"]
    content["samples"][1]["ground_truth"]["label"] = "dog"
    with pytest.raises(
        InputError, match=r"sample 2: has several decisions \(keep, label 'dog'\): keep only one of them"
    ):
        read_decisions(saved(run, content))


# Argilla


def test_argilla_records_decide_when_they_are_completed(run: Path) -> None:
    first, second, third = shared_json(run, "argilla")
    assert first["fields"]["given_label"] == "cat"
    assert first["suggestions"]["label"] == {"value": "dog", "score": 0.99, "agent": "run"}
    first |= {"responses": {"label": [{"value": "dog", "user_id": "u1"}]}, "status": "completed"}
    second |= {"responses": {"label": [{"value": "dog", "user_id": "u1"}]}, "status": "pending"}  # a draft
    third |= {"responses": {"decision": [{"value": "delete", "user_id": "u1"}]}, "status": "completed"}
    expected = GIVEN | {"cat/a b.png": "dog"}
    del expected['odd & "owl"/d.png']
    assert applied(run, saved(run, [first, second, third])) == (expected, (1, 0, 0, 1, 0))


# Tables


def test_datalab_gets_a_table_in_the_order_of_the_data(run: Path) -> None:
    (file,), _ = share(run, "datalab")
    with file.open(newline="") as text:
        rows = list(csv.DictReader(text))
    assert [row["index"] for row in rows] == ["0", "1", "2", "3"]
    assert [row["is_label_issue"] for row in rows] == ["True", "True", "False", "True"]
    assert [row["path"] for row in rows] == list(GIVEN)


def decide(file: Path, new: dict[str, str], column: str = "corrected_label") -> Path:
    """Fill in a column of a table by its index."""
    with file.open(newline="") as text:
        rows = list(csv.DictReader(text))
    for row in rows:
        row[column] = new.get(row["index"], "")
    out = file.with_name("decided.csv")
    with out.open("w", newline="") as text:
        writer = csv.DictWriter(text, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return out


def test_a_table_decides_where_its_corrected_label_is_filled_in(run: Path) -> None:
    (file,), _ = share(run, "datalab")
    decided = decide(file, {"0": "dog", "3": OWL})
    assert applied(run, decided) == (GIVEN | {"cat/a b.png": "dog"}, (1, 1, 0, 0, 0))


def test_label_issues_with_a_new_column_decide_too(run: Path) -> None:
    decided = decide(run / "label_issues.csv", {"1": "dog"})
    assert applied(run, decided) == (GIVEN | {"cat/b.png": "dog"}, (1, 0, 0, 0, 0))


def test_a_data_set_has_the_images_and_null_for_no_decision(run: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    (file,), _ = share(run, "datasets")
    table = parquet.read_table(file).to_pydict()
    assert [image["bytes"] for image in table["image"]] == [
        (run.parent / "photos" / path).read_bytes() for path in GIVEN
    ]
    assert [CLASSES[number] for number in table["label"]] == list(GIVEN.values())
    assert table["corrected_label"] == [None] * 4
    features = json.loads(parquet.read_schema(file).metadata[b"huggingface"])["info"]["features"]
    assert features["corrected_label"] == {"names": CLASSES, "_type": "ClassLabel"}


def test_a_data_set_decides_where_its_corrected_label_is_not_null(run: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    (file,), _ = share(run, "datasets")
    table = parquet.read_table(file)
    place = table.schema.names.index("corrected_label")
    new = table.set_column(place, table.schema.field(place), pyarrow.array([1, None, 1, -1], pyarrow.int64()))
    parquet.write_table(new, run.parent / "edited.parquet")
    assert applied(run, run.parent / "edited.parquet") == (GIVEN | {"cat/a b.png": "dog"}, (1, 1, 0, 0, 0))


# Errors


def wrong_class(content: Any) -> None:
    content[0]["annotations"] = [{"result": [{"from_name": "label", "value": {"choices": ["cat", "dog"]}}]}]


def no_index(content: Any) -> None:
    del content[0]["data"]["index"]
    content[0] = annotated(content[0], "dog")


def twice(content: Any) -> None:
    content[:] = [annotated(content[0], "dog")] * 2


def no_result(content: Any) -> None:
    content[0]["annotations"] = [{}]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (wrong_class, r"task 1: the label is \['cat', 'dog'\]: must be the name of a class"),
        (no_index, "task 1: has no index, path and given_label of a sample"),
        (twice, "task 2: sample 0 occurs twice"),
        (no_result, "task 1: has no result"),
    ],
)
def test_a_damaged_export_is_refused(run: Path, damage: Callable[[Any], None], words: str) -> None:
    content = shared_json(run, "label-studio")
    for task in content:
        task["annotations"] = []
    damage(content)
    with pytest.raises(InputError, match=words):
        read_decisions(saved(run, content))


@pytest.mark.parametrize("content", [[], {}, [1], [{"image": "x"}], None, "text", {"samples": 3}])
def test_json_of_another_kind_is_refused(run: Path, content: Any) -> None:
    with pytest.raises(InputError, match=r"export\.json: has no decisions that can be recognised"):
        read_decisions(saved(run, content))


def test_decisions_on_other_labels_are_refused(run: Path) -> None:
    content = shared_json(run, "fiftyone")
    content["samples"][0] |= {"given_label": "dog", "tags": ["delete"]}
    content["samples"][0]["ground_truth"]["label"] = "dog"
    with pytest.raises(InputError, match="given_label is 'dog', but"):
        applied(run, saved(run, content))


def test_arrays_have_no_files_to_show(run: Path) -> None:
    with pytest.raises(InputError, match=r"its images are not files, which Label Studio needs"):
        share(run, "label-studio", data="fashion")
    share(run, "datalab", data="fashion")


def test_a_run_on_arrays_from_python_has_its_data_with_it(run: Path) -> None:
    (run / "config.yaml").write_text("format: 2\ndata: data.npz\n")
    (run / "data.npz").write_bytes(b"")
    assert share(run, "datalab")[1] == 4
    with pytest.raises(InputError, match="its images are not files, which FiftyOne needs"):
        share(run, "fiftyone")


TEXTS = st.sampled_from(["index", "path", "given_label", "cat", "dog", "label", "", "completed"])
NAMES = (
    *(
        "data",
        "annotations",
        "annotation_id",
        "samples",
        "responses",
        "suggestions",
        "result",
        "value",
        "choices",
        "id",
    ),
    *("from_name", "ground_truth", "prediction", "tags", "index", "path", "given_label", "metadata", "status"),
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 3) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=6),
    max_leaves=25,
)


@given(VALUES | st.lists(st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=8), min_size=1, max_size=2))
def test_any_json_is_read_or_refused(value: Any) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder, "export.json")
        file.write_text(json.dumps(value))
        with suppress(InputError):  # any other exception fails the test
            read_decisions(file)


def test_tools_without_images_do_not_need_the_data(run: Path) -> None:
    (run.parent / "photos").rename(run.parent / "elsewhere")
    share(run, "datalab")
    share(run, "label-studio", image_url="https://host/")
    with pytest.raises(InputError, match=r"data is .*photos: no such file or folder; name where"):
        share(run, "datasets")
    share(run, "datasets", data=str(run.parent / "elsewhere"))


def test_a_file_is_not_replaced_silently(run: Path) -> None:
    share(run, "datalab")
    share(run, "datalab")  # the same content
    (run / "datalab.csv").write_text("mine")
    with pytest.raises(InputError, match="exists with another content"):
        share(run, "datalab")
    share(run, "datalab", overwrite=True)
    assert (run / "datalab.csv").read_text() != "mine"


def test_a_state_file_cannot_lead_out_of_its_folder(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / "dataset_info.json").write_text("{}")
    (tmp_path / "state.json").write_text(json.dumps({"_data_files": [{"filename": "../other.arrow"}]}))
    with pytest.raises(InputError, match="is not in the folder"):
        read_decisions(tmp_path)
