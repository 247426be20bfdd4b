"""dividemix relabel: the corrections that were made on a report's page, written into a new table."""

import argparse
from pathlib import Path

HELP = "apply the corrections downloaded from a report"


def add(relabel: argparse.ArgumentParser) -> None:
    """The flags of relabel."""
    relabel.add_argument("data", metavar="DATA", type=Path, help="the folder, .csv, .tsv, .npz or .parquet trained on")
    relabel.add_argument("corrections", metavar="CORRECTIONS", type=Path, help="the page's corrections.csv")
    relabel.add_argument("--out", metavar="FILE", type=Path, help="where to write (default: beside DATA)")
    relabel.add_argument("--path_column", metavar="NAME", default="path", help="the table's column of image paths")
    relabel.add_argument("--label_column", metavar="NAME", default="label", help="the table's column of labels")
    relabel.set_defaults(command=_relabel)


def _relabel(arguments: argparse.Namespace) -> int:
    from dividemix.relabel.relabel import default_out, relabel

    out: Path = arguments.out or default_out(arguments.data)
    done = relabel(
        arguments.data,
        arguments.corrections,
        out,
        path_column=arguments.path_column,
        label_column=arguments.label_column,
    )
    print(f"{out}: {done.num_changed} labels changed, {done.num_kept} kept, {done.num_skipped} left undecided")
    return 0
