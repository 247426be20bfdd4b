"""Read an annotation file of COCO's detection format: each box is a sample, its category the label.

https://cocodataset.org/#format-data describes the format: `images`, `annotations` and `categories` in one .json file.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dividemix.data.classes import label_name, printable
from dividemix.data.crop import Crop
from dividemix.data.images import ImageLike
from dividemix.data.listing import Listing
from dividemix.data.source import Skipped
from dividemix.errors import InputError, shown
from dividemix.stored import MAX_BYTES, parse_json, read_bytes

_SMALLEST = 4  # pixels of a side; a smaller box shows nothing


def list_coco(file: Path, *, image_root: Path | None = None, **_columns: Any) -> tuple[Listing, None]:
    """The boxes of an annotation file. Their names are the file name, # and the id of the annotation.

    Images are below `image_root`, or the folder of the file without one. Boxes around crowds, boxes smaller than 4
    pixels, and boxes without an image or a category are skipped and reported. Raises InputError if the file is not of
    this format, or two annotations have one id.
    """
    content = read_coco(file)
    if image_root is not None and not image_root.is_dir():
        raise InputError(f"image_root is {image_root}: no such folder; name the folder that file names start from")
    home, files, names = image_root or file.parent, file_names(content), category_names(content, file)
    found: dict[int, tuple[ImageLike, str, str]] = {}
    skipped = []
    for row, annotation in enumerate(content["annotations"]):
        name = sample_name(annotation, files, row)
        label = names.get(annotation.get("category_id"))
        problem = _problem(annotation, files, label)
        if problem or label is None:
            skipped.append(Skipped(printable(name), problem or "no category"))
        else:
            left, top, width, height = map(float, annotation["bbox"])
            crop = Crop(home / files[annotation["image_id"]], (left, top, width, height))
            found[row] = crop, printable(name), label
    if len({name for _, name, _ in found.values()}) < len(found):
        raise InputError(f"{file}: two annotations of one image have the same id: give each its own")
    listing = Listing(
        where=str(file),
        files=[crop for crop, _, _ in found.values()],
        paths=[name for _, name, _ in found.values()],
        labels=[label for _, _, label in found.values()],
        rows=list(found),
        num_given=len(content["annotations"]),
        ignored=skipped,
        remedy=f"; file names start from {home}: set image_root to the folder they start from",
    )
    return listing, None


def read_coco(file: Path) -> dict[str, Any]:
    """The content of an annotation file. Raises InputError unless it has lists of images, annotations, categories."""
    if not file.is_file():
        raise InputError(f"{file}: no such file")
    content = parse_json(read_bytes(file, MAX_BYTES), dict[str, Any], str(file))
    for name in ("images", "annotations", "categories"):
        part = content.get(name)
        if not isinstance(part, list) or not all(isinstance(one, dict) for one in part):
            raise InputError(f"{file}: has no list {name!r}: must be an annotation file of COCO's detection format")
    return content


def file_names(content: Mapping[str, Any]) -> dict[Any, str]:
    """Image id -> name of its file."""
    named = ((image.get("id"), image.get("file_name")) for image in content["images"])
    return {number: name for number, name in named if isinstance(number, int | str) and isinstance(name, str) and name}


def category_names(content: Mapping[str, Any], file: Path) -> dict[Any, str]:
    """Category id -> its name. Raises InputError if two categories have the same name or the same id."""
    named = [(one.get("id"), label_name(one.get("name"))) for one in content["categories"]]
    names = {number: name for number, name in named if isinstance(number, int) and name is not None}
    if len(names) < len(named) or len(set(names.values())) < len(names):
        raise InputError(f"{file}: two categories have the same id or name, or one has none: give each its own")
    return names


def sample_name(annotation: Mapping[str, Any], files: Mapping[Any, str], row: int) -> str:
    """The name of a box: its image's file name, # and its id; without an id, its position in the file."""
    image, number = annotation.get("image_id"), annotation.get("id", row)
    file = files.get(image) if isinstance(image, int | str) else None
    return f"{file or 'no image'}#{shown(number, 40)}"


def _problem(annotation: Mapping[str, Any], files: Mapping[Any, str], label: str | None) -> str | None:
    """Why a box cannot be a sample; None if it can."""
    box, image = annotation.get("bbox"), annotation.get("image_id")
    if not isinstance(image, int | str) or image not in files or "\0" in files[image]:
        return "no image with this id"
    if label is None:
        return "no category with this id"
    if annotation.get("iscrowd"):
        return "a crowd, not one object"
    if not isinstance(box, list) or len(box) != 4 or not all(_is_number(side) for side in box):
        return "no box of four numbers"
    if min(box[2:]) < _SMALLEST:
        return f"box smaller than {_SMALLEST} pixels"
    return None


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < 1e6 and math.isfinite(value)
