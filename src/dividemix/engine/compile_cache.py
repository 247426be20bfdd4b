"""Where torch keeps compiled code: a folder that no other user can write to, since its files are loaded and run."""

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

_VARIABLE = "TORCHINDUCTOR_CACHE_DIR"


def use_private_cache() -> None:
    """Give torch a new folder if its default, in the folder of all users' temporary files, belongs to somebody else."""
    if _VARIABLE in os.environ or not hasattr(os, "getuid"):  # chosen by the user, or Windows
        return
    from torch._inductor.runtime.cache_dir_utils import default_cache_dir

    folder = Path(default_cache_dir())
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)  # so that nobody can create it later
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & stat.S_IWOTH:
        os.environ[_VARIABLE] = tempfile.mkdtemp(prefix="dividemix-")
