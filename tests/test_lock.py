"""The lock against another process that holds the folder."""

import subprocess
import sys
from pathlib import Path

import pytest

from dividemix.errors import InputError
from dividemix.lock import exclusive

HOLD = """
import sys
from pathlib import Path
from dividemix.lock import exclusive
with exclusive(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_one_process_at_a_time_and_no_file_left(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(InputError, match="another process is training this run"), exclusive(tmp_path):
            pass
        holder.kill()
    with exclusive(tmp_path):  # ends with the process, however that ended
        pass
    assert list(tmp_path.iterdir()) == []
