"""Find all files below a folder, through links too. Loops end, because no folder is read twice."""

import os
from collections import deque
from collections.abc import Hashable, Iterator
from pathlib import Path

from dividemix.data.images import image_suffixes
from dividemix.data.same_file import identity
from dividemix.errors import is_refusal, refused


def walk(folder: Path, data: Path) -> Iterator[tuple[Path, str]]:
    """Each file below a folder of the data, without hidden ones, and "".

    A folder that is not followed, or has the name of an image, comes with the reason. Links to folders are followed
    last, so that a file is found under its own name first. Raises InputError if a folder cannot be read.
    """
    read: set[Hashable] = set()
    waiting = deque([folder])

    def refuse(error: OSError) -> None:
        raise refused(error.filename, error) from error

    while waiting:
        start = waiting.popleft()
        if start.is_symlink() and (_is_around(start, data) or _is_around(start, start.parent)):
            yield start, "link to a folder around it: not followed"
            continue
        if identity(start) in read:
            yield start, "link to a folder that is read already"
            continue
        for top, folders, names in os.walk(start, onerror=refuse):
            read.add(identity(top))
            below = [Path(top, name) for name in folders if not name.startswith(".")]
            waiting.extend(path for path in below if path.is_symlink())
            below = [path for path in below if not path.is_symlink()]
            yield from ((path, "a folder, not an image") for path in below if path.suffix.lower() in image_suffixes())
            folders[:] = [path.name for path in below if identity(path) not in read]
            for path in (Path(top, name) for name in names if not name.startswith(".")):
                _check_link(path)
                yield path, ""


def _check_link(path: Path) -> None:
    """Raise InputError if a link may lead to a folder, but the system does not say."""
    if path.suffix.lower() not in image_suffixes() and path.is_symlink():
        try:
            path.stat()
        except OSError as error:
            if is_refusal(error):
                raise refused(path, error) from error


def _is_around(link: Path, folder: Path) -> bool:
    """Whether a link leads to a folder, or to one that contains it."""
    target, inner = (os.path.realpath(path).rstrip(os.sep) + os.sep for path in (link, folder))
    return inner.startswith(target)
