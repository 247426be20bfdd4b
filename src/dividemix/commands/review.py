"""dividemix review: a local page on which all suspicious labels of a run are reviewed; decisions are saved at once."""

import argparse
import shlex
from pathlib import Path

from dividemix.errors import InputError, counted
from dividemix.planning.job import read_settings
from dividemix.runs.unfinished import named_run

HELP = "review all suspicious labels of a run in the browser"
EPILOG = """\
It prints an address for your browser and serves it on this machine only, until you press Ctrl-C. Every decision is
saved at once to RUN/review/corrections.csv; the same command continues. Then dividemix relabel DATA --run RUN writes
the corrected data. If no label is flagged, it shows those that come closest."""


def add(review: argparse.ArgumentParser) -> None:
    """Add the flags of review."""
    review.add_argument("run", metavar="RUN", type=named_run, help="the directory of a finished run")
    review.add_argument("--data", metavar="DATA", help="where the data of the run is now [where it was]")
    review.add_argument("--port", metavar="PORT", type=int, default=0, help="the port to listen on [a free one]")
    review.set_defaults(command=_review)


def _review(arguments: argparse.Namespace) -> int:
    from dividemix.lock import exclusive
    from dividemix.relabel.stored_review import Sample, StoredReview
    from dividemix.report.of_files import content_of_files
    from dividemix.report.review_server import ReviewServer
    from dividemix.report.run_pictures import run_pictures
    from dividemix.report.run_rows import run_rows
    from dividemix.report.run_texts import run_texts
    from dividemix.runs.reviewed import review_file

    run: Path = arguments.run
    if not 0 <= arguments.port < 65536:
        raise InputError(f"port is {arguments.port}: must be from 0 to 65535")
    content = content_of_files(run)
    written = run_texts(run, content, arguments.data) or run_rows(run, content, arguments.data)
    shown = run_pictures(run, content, arguments.data) if written is None else written
    suggested = content.probs.argmax(axis=1)
    samples = {
        int(index): Sample(
            "" if content.paths is None else content.paths[i],
            content.classes[content.labels[i]],
            content.classes[suggested[i]],
        )
        for i, index in enumerate(content.sample_rows)
    }
    file = review_file(run)
    file.parent.mkdir(exist_ok=True)
    with exclusive(file.parent, "another process reviews this run: use its address, or stop it"):
        review = StoredReview(file, samples, content.classes, can_add_classes=content.can_add_classes)
        data = arguments.data or str(read_settings(run / "config.yaml", of_run=True)["data"])
        apply = f"dividemix relabel {shlex.quote(data)} --run {shlex.quote(str(run))}"
        with ReviewServer(content, shown, review, {"saved_to": str(file), "apply": apply}, arguments.port) as server:
            num_flagged, num_decided = int(content.is_issue.sum()), len(review.decisions()[1])
            flagged = f"{num_flagged:,} of {counted(len(content.labels), 'label')} flagged"
            if not num_flagged:
                flagged = "no label is flagged; the page shows those that come closest"
            print(f"{run}: {flagged}, {num_decided:,} decided")
            print(f"open {server.url}")
            print(f"decisions are saved to {file} at once; Ctrl-C stops", flush=True)
            try:
                server.serve_forever()
            except KeyboardInterrupt:
                print()
        number = len(review.decisions()[1])
        print(f"{file}: {number:,} {'decision' if number == 1 else 'decisions'}; to apply: {apply}")
    return 0
