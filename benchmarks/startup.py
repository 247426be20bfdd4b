"""What `import dividemix` and `dividemix --help` take beyond Python's own start."""

import subprocess
import sys
from functools import partial

from benchmarks.contract import Options, Outcome, Row
from benchmarks.timing import medians, readable, timed

_PROGRAMS = {
    "python": "pass",
    "import": "import dividemix",
    "help": "import dividemix.cli; dividemix.cli.main(['--help'])",
}


def run(options: Options) -> Outcome:
    """Medians of ten processes each."""
    works = {name: timed(partial(_start, program)) for name, program in _PROGRAMS.items()}
    seconds = medians(works, repeats=3 if options.quick else 10)
    own = seconds["python"]
    figures = {"import_s": seconds["import"] - own, "help_s": seconds["help"] - own, "python_start_s": own}
    rows = [
        Row(f"import dividemix, beyond Python's {readable(own)}", "", readable(figures["import_s"]), "", "< 0.15 s"),
        Row("dividemix --help, likewise", "", readable(figures["help_s"]), "", "< 0.5 s"),
    ]
    return Outcome(rows, figures)


def _start(program: str) -> None:
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)
