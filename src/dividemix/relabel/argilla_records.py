"""Argilla: records with suggestions as `dataset.records.from_json` reads them, and what `to_json` writes back in."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dividemix.relabel.corrections import Correction
from dividemix.relabel.returned import Decision, correction, entry, one_for_each
from dividemix.relabel.shared import Content, Shared

_LABEL, _OTHER = "label", "decision"  # names of the two questions


def write_records(shared: Shared, image_url: str | None) -> dict[str, Content]:
    """The records. The field image is `image_url` and the path; without `image_url` it is the path of the file."""
    files = {} if image_url else shared.files("Argilla")
    records = [
        {
            "id": str(one.index),
            "fields": {
                "image": image_url + quote(one.path) if image_url else str(files[one.index].absolute()),
                "given_label": one.given_label,
            },
            "metadata": {
                "index": one.index,
                "path": one.path,
                "given_label": one.given_label,
                "suggested_label": one.predicted_label,
                "label_score": one.label_score,
            },
            "suggestions": {_LABEL: {"value": one.predicted_label, "score": one.predicted_prob, "agent": shared.name}},
            "responses": {},
            "vectors": {},
        }
        for one in shared.issues
    ]
    return {".json": (json.dumps(records, indent=1, ensure_ascii=False) + "\n").encode()}


def is_export(value: Any) -> bool:
    """Whether JSON is a list of records."""
    first = value[0] if isinstance(value, list) and value else None
    return isinstance(first, dict) and "responses" in first and "suggestions" in first


def decisions(file: Path, records: list[Any]) -> list[Correction]:
    """The decisions on completed records; a pending one may have drafts, which are no decisions.

    Raises:
        InputError: naming the record, if it is not one that was shared, or has another form.
    """
    found = []
    for number, record in enumerate(records, start=1):
        where = f"{file}: record {number}"
        people: dict[Any, dict[str, Any]] = {}
        for question, responses in entry(record, "responses", dict, where).items():
            for response in responses if isinstance(responses, list) else []:
                person = entry(response, "user_id", str, where)
                people.setdefault(person, {})[question] = response.get("value")
        if record.get("status") != "completed":
            continue
        decided = [_decision(answers) for answers in people.values()]
        found.append(correction(where, entry(record, "metadata", dict, where), decided))
    return one_for_each(found)


def _decision(answers: dict[str, Any]) -> Decision:
    other = answers.get(_OTHER)
    return Decision(other=other) if other else Decision(label=answers.get(_LABEL))
