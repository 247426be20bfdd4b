"""Files for other tools. Oracle: the tools' documented schemas, written out here, and decisions made by hand in them.

tests/relabel/test_real_tools.py does the same with the tools themselves, where they are installed.
"""

import ast
import copy
import csv
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from pkgutil import resolve_name
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
from dividemix.relabel import returned
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


# Every tool


def as_exported(tool: str, content: Any) -> Any:
    """What a tool exports of the file that it imported, before anybody has decided. Most export the same form."""
    if tool == "label-studio":
        return [task | {"annotations": []} for task in content]
    return content


def decide_in_label_studio(content: Any) -> None:
    result = {"from_name": "label", "to_name": "image", "type": "choices", "value": {"choices": ["dog"]}}
    content[0]["annotations"] = [{"was_cancelled": False, "result": [result]}]


def decide_in_fiftyone(content: Any) -> None:
    content["samples"][0]["ground_truth"]["label"] = "dog"


def decide_in_argilla(content: Any) -> None:
    content[0] |= {"responses": {"label": [{"value": "dog", "user_id": "u1"}]}, "status": "completed"}


# For each tool with a .json export: change the export as the tool does if a person labels its first sample "dog".
DECIDE: dict[str, Callable[[Any], None]] = {
    "label-studio": decide_in_label_studio,
    "fiftyone": decide_in_fiftyone,
    "argilla": decide_in_argilla,
}
JSON_TOOLS = [name for name, tool in TOOLS.items() if tool.export and tool.extension == ".json"]


def test_a_decision_is_made_in_every_tool_with_a_json_export() -> None:
    assert DECIDE.keys() == set(JSON_TOOLS), "add a function to DECIDE above"


@pytest.mark.parametrize("tool", TOOLS)
def test_what_nobody_decided_changes_nothing(run: Path, tool: str) -> None:
    (file, *_), _ = share(run, tool, every=True)
    if file.suffix == ".json":
        file = saved(run, as_exported(tool, json.loads(file.read_text())))
    assert read_decisions(file) == []
    assert applied(run, file) == (GIVEN, (0, 0, 0, 0, 0))


def decided_export(run: Path, tool: str) -> Any:
    content = as_exported(tool, shared_json(run, tool, every=True))
    DECIDE[tool](content)
    return content


@pytest.mark.parametrize("tool", DECIDE)
def test_a_decision_comes_back_with_its_sample(run: Path, tool: str) -> None:
    """The file must carry index, path, given_label and suggested_label to the tool, and back in its export."""
    file = saved(run, decided_export(run, tool))
    (one,) = read_decisions(file)
    assert (one.index, one.path, one.given_label) == (0, "cat/a b.png", "cat")
    assert one.action == "accept", "the export has lost suggested_label"
    assert applied(run, file) == (GIVEN | {"cat/a b.png": "dog"}, (1, 0, 0, 0, 0))


def damaged_once(value: Any) -> Iterator[Any]:
    """The JSON with one damage: each value in turn replaced by others of all types, and each entry removed."""
    yield from (None, 3, "text", [], {}, [None], [{}])
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        for inner in damaged_once(value[key]):
            changed = copy.copy(value)
            changed[key] = inner
            yield changed
        changed = copy.copy(value)
        del changed[key]
        yield changed


@pytest.mark.parametrize("tool", DECIDE)
def test_an_export_with_any_one_damage_is_read_or_refused(run: Path, tool: str) -> None:
    content, number = decided_export(run, tool), 0
    for number, damaged in enumerate(damaged_once(content), start=1):  # noqa: B007
        with suppress(InputError):  # any other exception fails the test
            read_decisions(saved(run, damaged))
    assert number > 100


def test_every_tool_that_needs_no_image_files_is_disturbed(run: Path) -> None:
    """tests/faults/scenarios.py has a scenario for each; its run is on arrays."""
    scenarios = (Path(__file__).parents[1] / "faults" / "scenarios.py").read_text(encoding="utf-8")
    missing = []
    for tool in TOOLS:
        try:
            share(run, tool, data="fashion", overwrite=True)
        except InputError as error:
            assert "its images are not files" in str(error)  # noqa: PT017 (a tool may need none)
        else:
            missing += [tool] if f'"share {tool}"' not in scenarios else []
    assert missing == [], "add a scenario `share NAME` to SCENARIOS"


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
    tool = Tool(title="Lines", write="none:none", flagged_only=True, export=module.__name__, extension=".lines")
    monkeypatch.setitem(TOOLS, "lines", tool)
    file = run.parent / "export.LINES"
    file.write_text('{"index": 0, "path": "cat/a b.png", "given_label": "cat", "new": "dog"}\n')
    assert applied(run, file) == (GIVEN | {"cat/a b.png": "dog"}, (1, 0, 0, 0, 0))
    file.write_text("[]\n")
    with pytest.raises(InputError, match=r" or the \.lines export of Lines$") as refused:
        read_decisions(file)
    assert all(one.title in str(refused.value) for one in TOOLS.values() if one.export)


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


def words_of(source: str) -> set[str]:
    """The texts in a source that may be names of JSON's objects."""
    nodes = ast.walk(ast.parse(source))
    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return {text for text in texts if text.isidentifier()}


READERS = [returned, *(resolve_name(TOOLS[name].export or "") for name in JSON_TOOLS)]
NAMES = sorted(set().union(*(words_of(Path(str(module.__file__)).read_text(encoding="utf-8")) for module in READERS)))


def test_the_names_that_the_readers_look_for_are_known() -> None:
    assert {"index", "given_label", "annotations", "ground_truth", "responses", "metadata"} <= set(NAMES)


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
