"""Change categories in an annotation file of COCO's format, remove deleted boxes; everything else stays."""

import json
from collections.abc import Sequence
from pathlib import Path

from dividemix.data.classes import printable
from dividemix.data.readers.coco import category_names, file_names, read_coco, sample_name
from dividemix.errors import InputError
from dividemix.relabel.corrections import Correction, by_path


def corrected_coco(file: Path, decided: Sequence[Correction], _path_column: str, _label_column: str) -> bytes:
    """The annotation file with the corrected categories. Raises InputError if they do not fit."""
    content = read_coco(file)
    files, names = file_names(content), category_names(content, file)
    numbers = {name: number for number, name in names.items()}
    annotations = content["annotations"]
    rows = {
        row: (printable(sample_name(annotation, files, row)), names.get(annotation.get("category_id")))
        for row, annotation in enumerate(annotations)
    }
    changes = by_path(decided, rows, file)
    for row, one in changes.items():
        if one.changes and one.new_label not in numbers:
            raise InputError(
                f"{one.where}: new_label {one.new_label[:100]!r} is not a category of {file}: "
                f"choose one of its {len(names)} categories, or add it to the file first"
            )
        if one.changes:
            annotations[row]["category_id"] = numbers[one.new_label]
    content["annotations"] = [
        annotation for row, annotation in enumerate(annotations) if row not in changes or not changes[row].deletes
    ]
    return json.dumps(content, ensure_ascii=False).encode("utf-8", "surrogatepass")
