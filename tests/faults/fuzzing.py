"""Fuzzed calls: command lines, the Python interface, readers, settings and requests, drawn by hypothesis.

Each call ends within its memory and a minute, without a traceback; whatever it refuses is one line. Files that run code
when they are imported or unpickled are planted in the working directory; none may run.
"""

import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from fuzzed_inputs import reader_calls, requests
from fuzzed_lines import command_lines, train_lines
from fuzzed_python import Bomb, python_calls, setting_calls
from fuzzed_trainings import trainings
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from other_samples import save_every_kind
from refused import Drawn
from sandbox import attempt_in_turn
from scenarios import finished_run, model_and_images, tables
from tally import Tally

from dividemix.cli import main
from dividemix.report.review_server import ReviewServer

NUM_CALLS = {
    "command lines": 1500,
    "train flags": 900,
    "settings": 1200,
    "Python": 600,
    "readers": 700,
    "requests": 500,
    "trainings": 800,
}
_SEED = 20


def prepare(folder: Path) -> None:
    """A folder with inputs of every kind, and planted files that must not run."""
    folder.mkdir(parents=True)
    finished_run(folder)
    model_and_images(folder)
    tables(folder)
    save_every_kind(folder)
    for name in ("planted.py", "numpy.py", "yaml.py", "sitecustomize.py"):
        (folder / name).write_text("open('RAN', 'w').close()\nRAN = None\n")
    (folder / "bomb.pth").write_bytes(pickle.dumps(Bomb()))
    np.savez(folder / "bomb.npz", x_train=np.array([Bomb()], dtype=object), y_train=np.zeros(1))
    (folder / "bomb.yaml").write_text("data: !!python/object/apply:os.system ['touch RAN']\n")
    (folder / "mine.yaml").write_text("net: planted:RAN\nmethod: planted:RAN\n")
    (folder / "empty").touch()
    (folder / "loop").symlink_to("loop")
    (folder / "words.txt").write_text("not\0a table")


def _line(words: list[str]) -> Drawn:
    return repr(words), lambda: main(words)


KINDS: dict[str, st.SearchStrategy[Drawn]] = {  # the quickest first
    "settings": setting_calls(),
    "requests": requests(),
    "readers": reader_calls(),
    "command lines": command_lines().map(_line),
    "Python": python_calls(),
    "train flags": train_lines().map(_line),
    "trainings": trainings(),
}
_AT_A_TIME = 20


def drawn(strategy: Any, number: int) -> list[Any]:
    """So many values, the same ones each time."""
    found: list[Any] = []
    quiet = settings(
        max_examples=number,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    seed(_SEED)(quiet(given(strategy)(lambda value: found.append(value))))()  # type: ignore[no-untyped-call]
    return found


def fuzzing(top: Path, only: str, step: int) -> Iterator[Tally]:
    """So many calls of each kind, on copies of the same inputs."""
    template, here = top / "template", top / "here"
    ReviewServer.serve_forever = lambda *_: None  # type: ignore[method-assign]
    prepare(template)
    for kind, strategy in KINDS.items():
        if only not in kind:
            continue
        tally, waiting = Tally("fuzzing", kind), drawn(strategy, max(1, NUM_CALLS[kind] // step))
        for some in (waiting[at : at + _AT_A_TIME] for at in range(0, len(waiting), _AT_A_TIME)):
            shutil.rmtree(here, ignore_errors=True)
            shutil.copytree(template, here, symlinks=True)
            outcomes = attempt_in_turn([call for _, call in some], here)
            has_run = (here / "RAN").exists()
            for (words, _), outcome in zip(some, outcomes, strict=True):
                problem = outcome.complaint or ("code was run by one of its batch" if has_run else "")
                tally.add(problem and f"{words[:700]}: {problem}", "refused" if outcome.code == 2 else "done")
        yield tally
