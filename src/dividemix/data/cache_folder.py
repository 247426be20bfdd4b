"""The folder for what can be computed again: vectors of encoders, indices of shards. It may be deleted at any time."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """DIVIDEMIX_CACHE, or the folder for such files of the user."""
    given = os.environ.get("DIVIDEMIX_CACHE")
    if given:
        return Path(given)
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "dividemix"
