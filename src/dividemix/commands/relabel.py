"""dividemix relabel: apply the corrections made in a report to a copy of the data's labels."""

import argparse
from pathlib import Path

HELP = "apply the corrections downloaded from a report"


def add(relabel: argparse.ArgumentParser) -> None:
    """Add the flags of relabel."""
    relabel.add_argument("data", metavar="DATA", type=Path, help="the folder or file that was trained on")
    relabel.add_argument("corrections", metavar="CORRECTIONS", type=Path, help="corrections.csv from the report")
    relabel.add_argument("--out", metavar="FILE", type=Path, help="the file to write [next to DATA]")
    relabel.add_argument(
        "--path_column", metavar="NAME", default="path", help="the table's column of image paths [path]"
    )
    relabel.add_argument("--label_column", metavar="NAME", default="label", help="the table's column of labels [label]")
    relabel.set_defaults(command=_relabel)


def _relabel(arguments: argparse.Namespace) -> int:
    from dividemix.relabel.relabel import default_out, relabel

    out: Path = arguments.out or default_out(arguments.data)
    columns = {"path_column": arguments.path_column, "label_column": arguments.label_column}
    done = relabel(arguments.data, arguments.corrections, out, **columns)
    labels = "label" if done.num_changed == 1 else "labels"
    print(f"{out}: {done.num_changed} {labels} changed, {done.num_kept} kept, {done.num_skipped} undecided")
    return 0
