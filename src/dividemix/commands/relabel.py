"""dividemix relabel: apply the decisions of a review to a copy of the data's labels, or to a cleaned folder."""

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from dividemix.errors import InputError, counted
from dividemix.meant import or_meant_path
from dividemix.runs.unfinished import is_run, named_run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dividemix.relabel.relabel import Relabelled

HELP = "apply the decisions of a review: write corrected labels or a cleaned folder"

EPILOG = """\
Names of columns are needed only without --run: a run knows those it was trained with. Examples:
  dividemix relabel photos --run runs/photos    after dividemix review
  dividemix relabel photos corrections.csv      downloaded from the report
  dividemix relabel photos --run runs/photos --copy_to photos_clean"""

_COLUMNS = {
    "path_column": "image paths [path",
    "label_column": "labels [label",
    "text_column": "texts, for data trained with --text_column [none",
    "target": "labels, for tables trained with --target [none",
    "key": "names of the rows, for tables trained with --target [none",
}


def add(relabel: argparse.ArgumentParser) -> None:
    """Add the flags of relabel."""
    relabel.add_argument("data", metavar="DATA", type=Path, help="the folder or file that was trained on")
    corrections = (
        "corrections.csv, downloaded from the report; or the export of another tool, see dividemix share --help"
        " [the decisions saved by dividemix review]"
    )
    relabel.add_argument("corrections", metavar="CORRECTIONS", nargs="?", type=Path, help=corrections)
    relabel.add_argument("--run", metavar="RUN", type=named_run, help="the run directory whose review is applied")
    above = "with --run: also accept suggestions for flagged labels with at least this probability, without a review"
    relabel.add_argument("--accept_above", metavar="P", type=float, help=above)
    relabel.add_argument("--out", metavar="FILE", type=Path, help="the file to write [next to DATA]")
    copy = "write a folder with one subfolder per class instead: hard links to the images where possible, else copies"
    relabel.add_argument("--copy_to", metavar="DIR", type=Path, help=copy)
    ambiguous = "leave out samples that were called ambiguous [they keep their label]"
    relabel.add_argument("--drop_ambiguous", action="store_true", help=ambiguous)
    root = "with --copy_to: the folder that a table's paths start from [the table's]"
    relabel.add_argument("--image_root", metavar="DIR", type=Path, help=root)
    relabel.add_argument("--overwrite", action="store_true", help="replace the file --out if it exists")
    for column, what in _COLUMNS.items():
        relabel.add_argument(
            f"--{column}", metavar="NAME", help=f"the table's column of {what}; with --run: the run's]"
        )
    relabel.set_defaults(command=_relabel)


def _relabel(arguments: argparse.Namespace) -> int:
    from dividemix.planning.job import JOB_FIELDS
    from dividemix.relabel.cleaned_folder import write_cleaned_folder
    from dividemix.relabel.decisions import read_decisions
    from dividemix.relabel.relabel import Relabelled, default_out, relabel, without_ambiguous
    from dividemix.relabel.run_decisions import decisions_of

    data, file, run = arguments.data, arguments.corrections, arguments.run
    if run is None and arguments.accept_above is not None:
        raise InputError("accept_above accepts suggestions of a run: name the run by --run RUN")
    if is_run(data):
        other = "DATA" if file is None else file
        raise InputError(f"{data} is a run, not data: dividemix relabel {other} --run {data}")
    if file is not None and is_run(file):
        raise InputError(f"{file} is a run: dividemix relabel {data} --run {file}")
    if file is None and run is None:
        raise InputError("no decisions: give corrections.csv from the report, or --run RUN for those of its review")
    if arguments.out is not None and arguments.copy_to is not None:
        raise InputError("--out writes a file, --copy_to a folder: give one of them")
    if not data.exists():
        raise InputError(f"{data}: no such file or folder: {or_meant_path(data, 'name what was trained on')}")
    decided = None if file is None else read_decisions(file)
    if run is not None:
        decided = decisions_of(run, decided, accept_above=arguments.accept_above)
    assert decided is not None
    numbers = Relabelled.of(decided)
    applied = without_ambiguous(decided) if arguments.drop_ambiguous else decided
    columns = _columns(arguments)
    if arguments.copy_to is not None:
        if {"text_column", "target"} & columns.keys():
            raise InputError("--copy_to is only for images, but the samples are texts or rows: use --out instead")
        num_images = write_cleaned_folder(data, applied, arguments.copy_to, **columns, image_root=arguments.image_root)
        print(f"{arguments.copy_to}: {counted(num_images, 'image')}; {_words(numbers)}")
        _say_next(arguments.copy_to, {})
        return 0
    out = arguments.out or default_out(data)
    if file is not None and out.resolve() == file.resolve():
        raise InputError(f"{out}: is an input and would be overwritten: choose another name for the corrected labels")
    relabel(data, applied, out, **columns, overwrite=arguments.overwrite)
    print(f"{out}: {_words(numbers)}")
    usual = {} if data.is_dir() else columns  # a folder becomes a table with the usual columns
    _say_next(out, {name: column for name, column in usual.items() if column != JOB_FIELDS[name].default})
    return 0


def _columns(arguments: argparse.Namespace) -> dict[str, str]:
    """The names of columns that are given, or that the run was trained with."""
    from dividemix.planning.job import read_settings

    file = None if arguments.run is None else arguments.run / "config.yaml"
    settings = read_settings(file, of_run=True) if file is not None and file.is_file() else {}
    found = {name: getattr(arguments, name) or settings.get(name) for name in _COLUMNS}
    return {name: column for name, column in found.items() if column is not None}


def _words(done: "Relabelled") -> str:
    """The numbers of decisions in words; of labels that do not change, only the kinds that there are."""
    more = {
        "confirmed": done.num_kept,
        "undecided": done.num_skipped,
        "deleted": done.num_deleted,
        "ambiguous": done.num_ambiguous,
    }
    words = "".join(f", {number:,} {name}" for name, number in more.items() if number)
    return f"{counted(done.num_changed, 'label')} changed{words}; all others are as before"


def _say_next(written: Path, columns: "Mapping[str, str]") -> None:
    """Print the command that trains on the corrected data, in a line of its own."""
    flags = [word for name, column in columns.items() for word in (f"--{name}", column)]
    print(f"next: {shlex.join(['dividemix', 'train', str(written), *flags])}")
