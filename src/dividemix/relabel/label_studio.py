"""Label Studio: tasks with predictions out, its export as JSON or JSON_MIN back in.

https://labelstud.io/guide/tasks and https://labelstud.io/guide/export describe the formats.
"""

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from dividemix.relabel.corrections import Correction
from dividemix.relabel.returned import OTHER_DECISIONS, Decision, correction, entry, one_for_each
from dividemix.relabel.shared import Content, Shared

LOCAL_FILES = "/data/local-files/?d="  # how Label Studio names files below LOCAL_FILES_DOCUMENT_ROOT
_LABEL, _OTHER = "label", "decision"  # names of the two controls


def write_tasks(shared: Shared, image_url: str | None) -> dict[str, Content]:
    """The tasks (.json) and the labelling interface (.xml). The address of an image is `image_url` and its path."""
    if image_url is None or not image_url.strip():
        shared.files("Label Studio")
        image_url = LOCAL_FILES
    tasks = [
        {
            "data": {
                "image": image_url + quote(one.path),
                "index": one.index,
                "path": one.path,
                "given_label": one.given_label,
                "suggested_label": one.predicted_label,
                "label_score": one.label_score,
            },
            "predictions": [
                {
                    "model_version": shared.name,
                    "score": one.predicted_prob,
                    "result": [
                        {
                            "id": f"sample-{one.index}",
                            "from_name": _LABEL,
                            "to_name": "image",
                            "type": "choices",
                            "value": {"choices": [one.predicted_label]},
                        }
                    ],
                }
            ],
        }
        for one in shared.issues
    ]
    text = json.dumps(tasks, indent=1, ensure_ascii=False) + "\n"
    return {".json": text.encode(), ".xml": _interface(shared.classes).encode()}


def _interface(classes: tuple[str, ...]) -> str:
    """The labelling interface: the image, the given label, a choice of classes, and a choice of other decisions."""
    choices = "\n".join(f"    <Choice value={quoteattr(name)}/>" for name in classes)
    others = "\n".join(f"    <Choice value={quoteattr(name)}/>" for name in OTHER_DECISIONS)
    return f"""<View>
  <Image name="image" value="$image"/>
  <Header value="Given label: $given_label"/>
  <Choices name="{_LABEL}" toName="image" choice="single" showInLine="true">
{choices}
  </Choices>
  <Header value="Or, without a class:"/>
  <Choices name="{_OTHER}" toName="image" choice="single" showInLine="true" required="false">
{others}
  </Choices>
</View>
"""


def is_export(value: Any) -> bool:
    """Whether JSON is an export of tasks, in the form JSON or JSON_MIN."""
    first = value[0] if isinstance(value, list) and value else None
    return isinstance(first, dict) and ("annotations" in first or "annotation_id" in first)


def decisions(file: Path, tasks: list[Any]) -> list[Correction]:
    """The decisions in an export. Cancelled annotations are skipped samples; a ground truth decides alone.

    Raises:
        InputError: naming the task, if it is not one that was shared, or has another form.
    """
    if any(isinstance(task, dict) and "annotation_id" in task for task in tasks):
        return _of_rows(file, tasks)
    found = []
    for number, task in enumerate(tasks, start=1):
        where = f"{file}: task {number}"
        annotations = entry(task, "annotations", list, where)
        final = [one for one in annotations if isinstance(one, dict) and one.get("ground_truth")]
        people = [_decision(one, where) for one in final or annotations]
        found.append(correction(where, entry(task, "data", dict, where), people))
    return one_for_each(found)


def _decision(annotation: Any, where: str) -> Decision:
    if isinstance(annotation, dict) and annotation.get("was_cancelled"):
        return Decision()
    chosen: dict[str, Any] = {}
    for result in entry(annotation, "result", list, where):
        choices = entry(entry(result, "value", dict, where), "choices", list, where)
        chosen[entry(result, "from_name", str, where)] = choices[0] if len(choices) == 1 else choices or None
    return _chosen(chosen)


def _chosen(values: dict[str, Any]) -> Decision:
    """The decision by the names of the controls; without a class, if there is another decision."""
    other = values.get(_OTHER)
    return Decision(other=other) if other else Decision(label=values.get(_LABEL) or None)


def _of_rows(file: Path, rows: list[Any]) -> list[Correction]:
    """The decisions in an export as JSON_MIN: one row for each annotation."""
    samples: dict[Any, tuple[str, dict[str, Any]]] = {}
    people: dict[Any, list[Decision]] = {}
    for number, row in enumerate(rows, start=1):
        where = f"{file}: entry {number}"
        task = entry(row, "id", int, where)
        samples.setdefault(task, (where, row))
        if row.get("annotation_id") is not None:  # else nobody has annotated the task
            people.setdefault(task, []).append(_chosen(row))
    return one_for_each(correction(*samples[task], people.get(task, [])) for task in samples)
