"""One run that several processes train together: the first creates or loads it as usual, the others follow.

All processes see the run directory, on one machine or on a shared file system.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from dividemix.engine import processes
from dividemix.errors import InputError
from dividemix.runs.replan import replan
from dividemix.runs.run import Run


def led(command: Callable[[], int]) -> NoReturn:
    """Carry out `command` in the first process, follow its trainings in the others, and end with its exit code."""
    code = 0
    try:
        with processes.joined():
            if processes.rank() == 0:
                code = command()
                processes.announce(None)
            else:
                while follow() is not None:
                    pass
    except RuntimeError as error:  # a run that was stopped has said so: that others ended, too, is no news
        if not code or not processes.is_lost_process(error):
            raise
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # threads of torch's processes can abort a program that ends in the usual way


def follow() -> Run | None:
    """Take part in the training that the first process announces; returns its run, or None if none comes any more."""
    path: str | None = None
    path, problem = processes.from_first(path), None
    if path is None:
        return None
    try:
        run = Run.load(Path(path), trust_net=True)  # the first process has decided on that
    except InputError as error:
        problem = str(error)
    processes.agree(problem)
    while not run.finished:
        run.rows.append(run.train_epoch())
        replan(run)
    run.judge_together()
    return run
