"""FiftyOne: samples as `fiftyone.Dataset.from_json` reads them, and what `write_json` or an export writes back in.

A decision is a new label in the field ground_truth, or a tag of the sample: keep, accept, skip, delete, ambiguous.
"""

import json
from pathlib import Path
from typing import Any

from dividemix.errors import InputError
from dividemix.relabel.corrections import Correction
from dividemix.relabel.returned import OTHER_DECISIONS, Decision, correction, entry, one_for_each
from dividemix.relabel.shared import Content, Shared

_TAGS = ("keep", "accept", "skip", *OTHER_DECISIONS)
_FIELDS = "fiftyone.core.fields."
_CLASSIFICATION = f"{_FIELDS}EmbeddedDocumentField(fiftyone.core.labels.Classification)"
_SAMPLE_FIELDS = {
    "filepath": f"{_FIELDS}StringField",
    "tags": f"{_FIELDS}ListField({_FIELDS}StringField)",
    "ground_truth": _CLASSIFICATION,
    "prediction": _CLASSIFICATION,
    "mistakenness": f"{_FIELDS}FloatField",
    "label_score": f"{_FIELDS}FloatField",
    "index": f"{_FIELDS}IntField",
    "path": f"{_FIELDS}StringField",
    "given_label": f"{_FIELDS}StringField",
}


def write_samples(shared: Shared, image_url: str | None) -> dict[str, Content]:
    """The samples, flagged ones with the tag label_issue; `image_url` and the path is the file, if it is given."""
    files = {} if image_url else shared.files("FiftyOne")
    samples = [
        {
            "filepath": image_url + one.path if image_url else str(files[one.index].absolute()),
            "tags": ["label_issue"] if one.is_label_issue else [],
            "ground_truth": _label(one.given_label),
            "prediction": _label(one.predicted_label) | {"confidence": one.predicted_prob},
            "mistakenness": 1 - sum(one.clean_prob) / len(one.clean_prob),
            "label_score": one.label_score,
            "index": one.index,
            "path": one.path,
            "given_label": one.given_label,
        }
        for one in shared.issues
    ]
    content = {
        "name": shared.name,
        "media_type": "image",
        "sample_fields": _SAMPLE_FIELDS,
        "default_classes": list(shared.classes),
        "info": {},
        "samples": samples,
    }
    return {".json": (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()}


def _label(name: str) -> dict[str, Any]:
    return {"_cls": "Classification", "tags": [], "label": name}


def is_export(value: Any) -> bool:
    """Whether JSON is a data set of FiftyOne."""
    return isinstance(value, dict) and isinstance(value.get("samples"), list)


def decisions(file: Path, content: dict[str, Any]) -> list[Correction]:
    """The decisions on samples. Raises InputError if one was not shared, or has decisions that exclude each other."""
    found = []
    for number, sample in enumerate(content["samples"], start=1):
        where = f"{file}: sample {number}"
        given = entry(sample, "given_label", str, where)
        suggested = entry(entry(sample, "prediction", dict, where), "label", str, where)
        current = sample.get("ground_truth")  # None: somebody removed the label, which decides nothing
        label = entry(current, "label", str, where) if current is not None else given
        tags = [tag for tag in entry(sample, "tags", list, where) if tag in _TAGS]
        if len(set(tags)) > 1 or (tags and label != given):
            made = [*tags, *([f"label {label[:50]!r}"] if label != given else [])]
            raise InputError(f"{where}: has several decisions ({', '.join(made)}): keep only one of them")
        known = sample | {"suggested_label": suggested}
        found.append(correction(where, known, _decisions(tags, label, given, suggested)))
    return one_for_each(found)


def _decisions(tags: list[str], label: str, given: str, suggested: str) -> list[Decision]:
    """The decision of a sample's tags and label, if there is one."""
    if not tags:
        return [Decision(label=label)] if label != given else []
    if tags[0] in OTHER_DECISIONS:
        return [Decision(other=tags[0])]
    return [Decision(label={"keep": given, "accept": suggested, "skip": None}[tags[0]])]
