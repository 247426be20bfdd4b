"""dividemix share: a run's label issues in the format of another tool."""

import argparse
from pathlib import Path

from dividemix.relabel.tools import FLAGGED_ONLY, TITLES, TOOLS, listed
from dividemix.runs.unfinished import named_run

HELP = f"write a run's label issues for {listed(TITLES, 'or')}"
EPILOG = f"""\
Decide in the tool, export, and give the export to dividemix relabel DATA EXPORT. {listed(FLAGGED_ONLY, "and")} get the
flagged samples, the others all of them."""


def add(share: argparse.ArgumentParser) -> None:
    """Add the flags of share."""
    share.add_argument("run", metavar="RUN", type=named_run, help="the directory of a finished run")
    share.add_argument("--to", choices=TOOLS, required=True, help="the tool")
    share.add_argument("--out", metavar="FILE", type=Path, help="the file to write [in RUN, with the name of the tool]")
    share.add_argument(
        "--all", action="store_true", help=f"all samples, not only flagged ones, for {listed(FLAGGED_ONLY, 'and')}"
    )
    share.add_argument("--data", metavar="DATA", help="where the data is now [where it was when the run was trained]")
    url = "text before the path of each image, such as https://host/photos/ [label-studio: /data/local-files/?d=]"
    share.add_argument("--image_url", metavar="TEXT", help=url)
    share.add_argument("--overwrite", action="store_true", help="replace existing files")
    share.set_defaults(command=_share)


def _share(arguments: argparse.Namespace) -> int:
    from dividemix.relabel.share import share

    files, number = share(
        arguments.run,
        arguments.to,
        arguments.out,
        every=arguments.all,
        data=arguments.data,
        image_url=arguments.image_url,
        overwrite=arguments.overwrite,
    )
    print(f"{', '.join(map(str, files))}: {number:,} {'sample' if number == 1 else 'samples'}")
    return 0
