"""dividemix export: a trained run's model as one file for other programs."""

import argparse
import hashlib
from pathlib import Path

from dividemix.model import EXPORT_FORMATS
from dividemix.runs.unfinished import named_run

HELP = "write a trained run's model as one file for other programs"
EPILOG = """\
The file takes raw uint8 images (N, H, W, channels), or float32 vectors (N, D), and gives probabilities (N, classes).
For rows it takes float64 (N, columns): a category is its position in the list of config.json, -1 if it is not there,
and a missing value is NaN. The file is checked against the model before it is written."""


def add(export: argparse.ArgumentParser) -> None:
    """Add the flags of export."""
    export.add_argument("run", metavar="RUN", type=named_run, help="a run directory, or the model/ in it")
    formats = "; ".join(f"{name}: {what}" for name, what in EXPORT_FORMATS.items())
    export.add_argument("--format", choices=EXPORT_FORMATS, required=True, help=formats)
    export.add_argument("--out", metavar="FILE", type=Path, help="the file to write [model.FORMAT in RUN]")
    export.add_argument(
        "--trust_net", action="store_true", help="allow the code of a net that the run names: only if you trust it"
    )
    export.set_defaults(command=_export)


def _export(arguments: argparse.Namespace) -> int:
    from dividemix.model.export import export

    out: Path = arguments.out or arguments.run / f"model.{arguments.format}"
    difference = export(arguments.run, out, arguments.format, trust_net=arguments.trust_net)
    print(f"{out}: probabilities differ by at most {difference:.1e} from those of the run")
    print(f"sha256 {hashlib.sha256(out.read_bytes()).hexdigest()}")  # the format itself has no digest that is checked
    return 0
