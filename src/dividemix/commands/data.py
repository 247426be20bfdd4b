"""dividemix data: fetch a data set from its official site, or check what of one is in a folder."""

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dividemix.data.cifar_archives import ARCHIVES
from dividemix.errors import InputError

HELP = "fetch a data set, or check what is there of one"
_CHECKED = (*ARCHIVES, "clothing1m", "webvision")
_EPILOG_FETCH = """\
A download that was cut goes on where it ended. What is there already is not fetched again."""
_EPILOG_CHECK = """\
Exit code 0 if all of it can be used, 2 if something is missing or damaged."""


def add(data: argparse.ArgumentParser) -> None:
    """The commands of data, and their flags."""
    actions = data.add_subparsers(title="commands", required=True, metavar="COMMAND")
    fetch = actions.add_parser("fetch", help="download CIFAR from its official site", epilog=_EPILOG_FETCH)
    fetch.add_argument("name", metavar="NAME", help=" or ".join(ARCHIVES))
    fetch.add_argument("--root", metavar="DIR", type=Path, default=Path("data"), help="where to (default: data)")
    fetch.add_argument("--url", metavar="URL", help="another place of the same archive (default: the official site)")
    fetch.set_defaults(command=_fetch)
    check = actions.add_parser("check", help="say what is there, missing or damaged", epilog=_EPILOG_CHECK)
    check.add_argument("name", metavar="NAME", choices=_CHECKED, help=", ".join(_CHECKED))
    check.add_argument("--root", metavar="DIR", type=Path, required=True, help="the folder that holds it")
    check.add_argument(
        "--decode", action="store_true", help="open every image file, which takes long; CIFAR is always read whole"
    )
    check.set_defaults(command=_check)


def _fetch(arguments: argparse.Namespace) -> int:
    from dividemix.data.fetch import fetch
    from dividemix.engine.interrupts import Interrupted, Interrupts

    name, root = arguments.name, arguments.root
    if name in _CHECKED and name not in ARCHIVES:
        raise InputError(
            f"{name} is given out by its authors, on request or with a licence: lay it out as dividemix data check"
            f" {name} --root DIR says"
        )
    if name not in ARCHIVES:
        raise InputError(f"unknown data set {name!r}: {' or '.join(ARCHIVES)} can be fetched")
    archive = ARCHIVES[name]
    try:
        with Interrupts(), _progress(archive.name, in_bytes=True) as show:
            fetched = fetch(archive, root, url=arguments.url, progress=show)
    except Interrupted as interrupt:
        print(f"stopped by {interrupt}: the same command goes on from here", file=sys.stderr)
        return 128 + interrupt.number
    print(f"{root}: {name} {'is there now, its check sums are right' if fetched else 'was there already'}")
    return 0


def _check(arguments: argparse.Namespace) -> int:
    from dividemix.data.check import check

    with _progress("images decoded") as show:
        checked = check(arguments.name, arguments.root, decode=arguments.decode, progress=show)
    for finding in checked.findings:
        print(f"{finding.state:8} {finding.what}{': ' if finding.detail else ''}{finding.detail}")
    if not checked.usable:
        print(f"\nexpected, where DIR is {arguments.root}:\n{checked.layout}\n")
    states = Counter(finding.state for finding in checked.findings)
    problems = [f"{states[state]} {state}" for state in ("missing", "damaged") if states[state]]
    print(f"{arguments.name}: {'not usable as it is: ' + ', '.join(problems) if problems else 'usable'}")
    return 0 if checked.usable else 2


@contextmanager
def _progress(what: str, *, in_bytes: bool = False) -> Iterator[Callable[[int, int], None]]:
    """A callback that shows how much of how much is done: a bar on a terminal, elsewhere a line for each tenth."""
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
