"""Check a CIFAR data set in a folder or an archive: a finding for each official file."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from dividemix.data.builtin import BUILT_IN
from dividemix.data.check import Finding, Progress
from dividemix.data.readers.cifar import CIFARS, AbsentError, Cifar, Layout, open_files, read_batch
from dividemix.errors import InputError, is_refusal


def check_cifar(name: str, root: Path, decode: bool, progress: Progress) -> Iterator[Finding]:
    """A finding for each file, in the folder or the archive; `decode` has no effect, files are always read."""
    cifar, num_images = CIFARS[name], BUILT_IN[name].num_images
    try:
        place, layout, files = open_files(cifar, root)
    except AbsentError:
        yield Finding("missing", str(root), f"has no {cifar.name}" if root.exists() else "no such folder")
        return
    except InputError as error:  # its message names the file
        if is_refusal(error.__cause__):
            raise
        yield Finding("damaged", str(error))
        return
    for split, batches in (("train", layout.train), ("test", layout.test)):
        for batch in batches:
            if batch in files:
                yield _check_batch(cifar, layout, files[batch], place / batch, num_images[split] // len(batches))
            else:
                yield Finding("missing", str(place / batch))


def _check_batch(cifar: Cifar, layout: Layout, content: bytes, where: Path, num_images: int) -> Finding:
    """The finding for one file, which should have so many images."""
    archive = BUILT_IN[cifar.name].archive
    assert archive is not None
    expected = archive.md5[where.name] if layout.folder == archive.folder else None
    if hashlib.md5(content, usedforsecurity=False).hexdigest() == expected:
        return Finding("ok", str(where), f"the official file, {num_images} images")
    try:
        images, _ = read_batch(layout, content, str(where), len(cifar.classes))
    except InputError as error:
        return Finding("damaged", str(where), str(error).removeprefix(f"{where}").lstrip(": "))
    if len(images) != num_images:
        return Finding("damaged", str(where), f"{len(images)} images instead of {num_images}: cut short, or a subset")
    if expected is None:  # there are no published checksums of the binary files
        return Finding("ok", str(where), f"{num_images} images")
    return Finding("note", str(where), f"{num_images} images: readable, but not the official file")
