"""dividemix data: fetch a data set from its official site, or check the files of one in a folder."""

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dividemix.data.builtin import BUILT_IN
from dividemix.errors import InputError
from dividemix.meant import or_meant

HELP = "fetch a data set, or check its files"
_CHECKED = tuple(name for name, built_in in BUILT_IN.items() if built_in.checker)
_FETCHED = tuple(name for name, built_in in BUILT_IN.items() if built_in.archive)
_EPILOG_FETCH = "An interrupted download is resumed. Existing files are not fetched again."
_EPILOG_CHECK = "Exit code 0 if all files can be used, 2 if something is missing or damaged."


def add(data: argparse.ArgumentParser) -> None:
    """Add the commands of data and their flags."""
    actions = data.add_subparsers(title="commands", required=True, metavar="COMMAND")
    fetch = actions.add_parser("fetch", help="download a data set from its official site", epilog=_EPILOG_FETCH)
    fetch.add_argument("name", metavar="NAME", help=" or ".join(_FETCHED))
    fetch.add_argument("--root", metavar="DIR", type=Path, default=Path("data"), help="folder to write to [data]")
    fetch.add_argument("--url", metavar="URL", help="another address of the same archive [the official site]")
    fetch.set_defaults(command=_fetch)
    check = actions.add_parser("check", help="report which files are ok, missing or damaged", epilog=_EPILOG_CHECK)
    check.add_argument("name", metavar="NAME", choices=_CHECKED, help=", ".join(_CHECKED))
    check.add_argument("--root", metavar="DIR", type=Path, required=True, help="the folder of the data set")
    decode = "open every image file, which is slow; arrays are always read"
    check.add_argument("--decode", action="store_true", help=decode)
    check.set_defaults(command=_check)


def _fetch(arguments: argparse.Namespace) -> int:
    from dividemix.data.fetch import fetch
    from dividemix.engine.interrupts import Interrupted, Interrupts

    name, root = arguments.name, arguments.root
    archive = BUILT_IN[name].archive if name in BUILT_IN else None
    if archive is None and name in _CHECKED:
        raise InputError(
            f"{name} cannot be fetched: get it from its authors, and arrange its files as"
            f" dividemix data check {name} --root DIR prints"
        )
    if archive is None:
        if name in BUILT_IN:
            raise InputError(f"{name} is part of the package: dividemix train {name} needs no files")
        known = f"{' or '.join(_FETCHED)} can be fetched"
        raise InputError(f"unknown data set {name!r}: {or_meant(name, _FETCHED, known)}")
    try:
        with Interrupts(), _progress(archive.name, in_bytes=True) as show:
            fetched = fetch(archive, root, url=arguments.url, progress=show)
    except Interrupted as interrupt:
        print(f"stopped by {interrupt}: run the same command to resume", file=sys.stderr)
        return 128 + interrupt.number
    print(f"{root}: {name} {'fetched, checksums are right' if fetched else 'exists already'}")
    return 0


def _check(arguments: argparse.Namespace) -> int:
    from dividemix.data.check import check

    with _progress("images decoded") as show:
        checked = check(arguments.name, arguments.root, decode=arguments.decode, progress=show)
    for finding in checked.findings:
        print(f"{finding.state:8} {finding.what}{': ' if finding.detail else ''}{finding.detail}")
    if not checked.usable:
        print(f"\nexpected layout, where DIR is {arguments.root}:\n{checked.layout}\n")
    states = Counter(finding.state for finding in checked.findings)
    problems = [f"{states[state]} {state}" for state in ("missing", "damaged") if states[state]]
    print(f"{arguments.name}: {'not usable: ' + ', '.join(problems) if problems else 'usable'}")
    return 0 if checked.usable else 2


@contextmanager
def _progress(what: str, *, in_bytes: bool = False) -> Iterator[Callable[[int, int], None]]:
    """A callback that shows progress: a bar on a terminal, elsewhere a line for each tenth."""
    from rich.progress import DownloadColumn, MofNCompleteColumn, Progress, TransferSpeedColumn

    from dividemix.display import console

    columns = (DownloadColumn(), TransferSpeedColumn()) if in_bytes else (MofNCompleteColumn(),)
    last_tenth = -1
    with Progress(*Progress.get_default_columns(), *columns, console=console, disable=not console.is_terminal) as bar:

        def show(done: int, total: int) -> None:
            nonlocal last_tenth
            if not bar.tasks:
                bar.add_task(what, total=total, completed=done)
            bar.update(bar.task_ids[0], completed=done)
            tenth = 10 * done // total
            if bar.disable and tenth > last_tenth:
                last_tenth = tenth
                print(f"{what}: {10 * tenth} %", flush=True)

        yield show
