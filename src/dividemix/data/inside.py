"""Test whether files are inside a folder, after links are followed."""

import os
from functools import lru_cache
from pathlib import Path


class Inside:
    """The files inside a folder; a link that leads out of it is not inside."""

    def __init__(self, folder: Path):
        self._prefix = os.path.realpath(folder).rstrip(os.sep) + os.sep
        self._real = lru_cache(maxsize=10_000)(os.path.realpath)  # many files share a folder

    def __contains__(self, path: Path) -> bool:
        """Whether the path, which has no .., is inside; the file need not exist."""
        if os.path.islink(path):  # noqa: PTH114 (Path.is_symlink raises on names that are too long)
            return os.path.realpath(path).startswith(self._prefix)
        return f"{self._real(path.parent)}{os.sep}".startswith(self._prefix)
