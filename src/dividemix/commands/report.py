"""dividemix report: build the page of a finished run again, for example after an update of dividemix."""

import argparse

from dividemix.commands.loaded_run import add_run, load_run

HELP = "write report.html of a finished run again"


def add(report: argparse.ArgumentParser) -> None:
    """Add the flags of report."""
    add_run(report)
    report.set_defaults(command=_report)


def _report(arguments: argparse.Namespace) -> int:
    run = load_run(arguments)

    from dividemix.report.of_run import write_report

    path = write_report(run)
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB; open it in a browser")
    return 0
