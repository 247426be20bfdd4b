"""Whether files stay inside a folder, links followed."""

import os
from functools import lru_cache
from pathlib import Path


class Inside:
    """The files inside a folder: nothing that a link leads out of it."""

    def __init__(self, folder: Path):
        self._prefix = os.path.realpath(folder).rstrip(os.sep) + os.sep
        self._real = lru_cache(maxsize=10_000)(os.path.realpath)  # most files share their folder with others

    def __contains__(self, path: Path) -> bool:
        """Whether the file that a path without .. names, there or not, is inside."""
        if os.path.islink(path):  # noqa: PTH114 (that of Path raises on names that are too long)
            return os.path.realpath(path).startswith(self._prefix)
        return f"{self._real(path.parent)}{os.sep}".startswith(self._prefix)
