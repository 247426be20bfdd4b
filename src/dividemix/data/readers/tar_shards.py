"""Read a .tar shard of the WebDataset layout: key.jpg with key.cls or key.json, for each sample.

The key of a file is its name up to the first dot, with its folders. Nothing is unpacked, and links are not followed.
"""

import json
import re
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np

from dividemix.data.classes import label_name, printable
from dividemix.data.images import image_suffixes
from dividemix.data.readers.table import TRUE_LABEL
from dividemix.data.shard_files import ShardFile
from dividemix.data.shard_index import ShardIndex, counted, kept_index
from dividemix.data.tar_members import DamagedTar, Member, members
from dividemix.errors import InputError, refused

_KEY = re.compile(r"((?:.*/)?[^./][^/.]*)\.([^/]+)", re.DOTALL)  # a key, a dot and an extension, which may have dots
_LABELS = ("cls", "json")
_MAX_LABEL = 1 << 20  # bytes of a .json file
_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstd"}


@dataclass(slots=True)
class _Sample:
    """The files of one key."""

    images: list[Member] = field(default_factory=list)
    labels: list[tuple[str | None, str | None]] = field(default_factory=list)  # label and true label, by file
    problem: str = ""


def index_tar(shard: ShardFile, label_column: str) -> ShardIndex:
    """What the shard contains; from the disk, if it was made before and the shard has not changed.

    The label is the text of key.cls, or the value of `label_column` in key.json, which may also have a `true_label`.

    Raises:
        InputError: if the shard is missing, compressed or damaged.
    """
    return kept_index(["tar", *shard.stamp(), label_column], lambda: _index(shard, label_column))


def _index(shard: ShardFile, label_column: str) -> ShardIndex:
    samples: dict[str, _Sample] = {}
    ignored: list[tuple[str, str]] = []
    suffixes = frozenset(suffix[1:] for suffix in image_suffixes())
    try:
        with shard.open() as file:
            _refuse_compressed(file, shard.name)
            for member in members(file, shard.num_bytes()):
                match = _KEY.fullmatch(member.name)
                key, extension = (match[1].removeprefix("./"), match[2].lower()) if match else ("", "")
                if extension in suffixes:
                    sample = samples.setdefault(key, _Sample())
                    sample.images.append(member)
                    if member.is_link:
                        sample.problem = "a link: not followed"
                elif extension in _LABELS and not member.is_link:
                    _add_label(samples.setdefault(key, _Sample()), file, member, extension, label_column)
                elif not member.name.rpartition("/")[2].startswith("."):
                    reason = "a link: not followed" if member.is_link else "neither an image nor a label"
                    ignored.append((printable(member.name), reason))
    except DamagedTar as error:
        raise InputError(f"{shard.name}: {error}: copy or write the shard again, or leave it out") from error
    except OSError as error:
        raise refused(shard.name, error) from error
    return _joined(samples, counted(ignored))


def _refuse_compressed(file: BinaryIO, name: str) -> None:
    start = file.read(6)
    for magic, kind in _MAGIC.items():
        if start.startswith(magic):
            raise InputError(f"{name}: compressed by {kind}, so its images cannot be read by position: decompress it")


def _add_label(sample: _Sample, file: BinaryIO, member: Member, extension: str, label_column: str) -> None:
    """Add the label of a file, if it has one."""
    if member.size > _MAX_LABEL:
        sample.problem = f"label file of {member.size:,} bytes"
        return
    file.seek(member.offset)
    content = file.read(member.size)
    if extension == "cls":
        sample.labels.append((label_name(content), None))
        return
    try:
        values = json.loads(content)
    except (ValueError, RecursionError):
        sample.problem = "its .json file is damaged"
        return
    label, truth = (
        (values.get(name) for name in (label_column, TRUE_LABEL)) if isinstance(values, dict) else (None,) * 2
    )
    if any(not isinstance(value, str | int | float | None) or isinstance(value, bool) for value in (label, truth)):
        sample.problem = f"{label_column} in its .json file is neither text nor a number"
    elif label is not None or truth is not None:
        sample.labels.append((label_name(label), label_name(truth)))


def _joined(samples: dict[str, _Sample], ignored: list[tuple[str, str]]) -> ShardIndex:
    """The images in the order of their keys in the archive."""
    problems: dict[int, str] = {}
    names: list[str] = []
    places = np.zeros((2, len(samples)), dtype=np.int64)
    labels: list[str | None] = []
    true_labels: list[str | None] = []
    same: dict[str | None, str | None] = {}  # one text for all equal labels
    for number, (key, sample) in enumerate(samples.items()):
        if problem := _problem(sample):
            problems[number] = problem
        image = sample.images[0] if sample.images else Member(key, 0, 0, is_link=False)
        names.append(printable(image.name))
        places[:, number] = image.offset, image.size
        label = next((label for label, _ in sample.labels if label is not None), None)
        truth = next((truth for _, truth in sample.labels if truth is not None), None)
        labels.append(same.setdefault(label, label))
        true_labels.append(same.setdefault(truth, truth))
    return ShardIndex(
        names=names,
        offsets=places[0],
        sizes=places[1],
        labels=labels,
        true_labels=true_labels,
        problems=problems,
        ignored=ignored,
    )


def _problem(sample: _Sample) -> str:
    """Why a sample cannot be used; empty if it can."""
    if not sample.images:
        return "a label without an image"
    if len(sample.images) > 1:
        return f"{len(sample.images)} images for one key"
    for kind in (0, 1):
        if len(known := sorted({pair[kind] for pair in sample.labels} - {None}, key=str)) > 1:
            return f"two labels: {' and '.join(map(str, known))[:100]}"
    has_label = any(label is not None for label, _ in sample.labels)
    return sample.problem or ("" if has_label else "no label")
