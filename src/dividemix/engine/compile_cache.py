"""Where torch keeps compiled code: a folder that no other user can write to, since its files are loaded and run."""

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

_VARIABLE = "TORCHINDUCTOR_CACHE_DIR"


def use_private_cache() -> None:
    """Give torch a new folder if its default, in the folder of all users' temporary files, belongs to somebody else."""
    given = os.environ.get(_VARIABLE)
    from torch._inductor.runtime.cache_dir_utils import default_cache_dir

    folder = Path(default_cache_dir())
    # Torch itself sets the variable to its default when its compiler is imported.
    is_chosen = given is not None and Path(given).absolute() != folder.absolute()
    if is_chosen or not hasattr(os, "getuid"):  # by the user, or Windows
        return
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)  # so that nobody can create it later
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & stat.S_IWOTH:
        os.environ[_VARIABLE] = tempfile.mkdtemp(prefix="dividemix-")
