"""python -m dividemix, beside the installed command."""

import subprocess
import sys


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dividemix", "presets", "--no_such"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "dividemix: error: unknown flag --no_such: see dividemix presets --help\n"
