"""Many processes at a time on one directory or file. Oracle: what one process alone leaves.

All are forked from a process that has imported everything, and start when all of them exist.
"""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from disturb import differences
from other_samples import ENCODED, PARQUET, TAR, save_tables, save_tar, train_on
from sandbox import Call, Outcome, attempt, attempt_together
from scenarios import (
    QUICK,
    SHORT,
    command,
    finished_run,
    half_run,
    is_stray,
    left,
    model_and_images,
    review,
    sweep,
    tables,
    two_runs,
)
from tally import Tally
from toys import save_toy

# What a process may say that came second.
BUSY = (
    *("has a run already", "meanwhile", "another process is training", "is training this run", "exists"),
    *("another process reviews", "another sweep is running"),
)


@dataclass(frozen=True)
class Crowd:
    """Processes that make the same calls, in turn, on one folder; `alone` is what one process of the first does."""

    name: str
    inputs: Callable[[Path], object]
    calls: tuple[Call, ...]
    number: int
    all_succeed: bool = False
    each_own: bool = False  # whether each writes its own run, so that only the first can be compared


_train = command("train", *SHORT)
_predict = command("predict", "model", "images", "--out", "out.csv", "--overwrite")
_export = command("export", "model", "--format", "pt2", "--out", "out.pt2")
_relabel = command("relabel", "data.csv", "table_corrections.csv", "--overwrite")
_npz = command("relabel", "data.npz", "npz_corrections.csv", "--overwrite")
_cleaned = command("relabel", "photos", "folder_corrections.csv", "--copy_to", "cleaned")
_resume = command("train", "--resume", "--out", "run")
_evaluate = command("evaluate", "run")
_compare = command("compare", "run", "other", "--out", "page.html")


def _page() -> int:
    from dividemix.report.of_run import write_report
    from dividemix.runs.run import Run

    write_report(Run.load("run", to_train=False))
    return 0


_share = command("share", "run", "--to", "datalab", "--overwrite")


def _own_runs(words: list[str], number: int) -> tuple[Call, ...]:
    """The training, in each process to its own directory; the first has the one that `words` names."""
    return tuple(train_on([*words, *(["--out", f"run{i}"] if i else [])]) for i in range(number))


CROWDS = (
    Crowd("train, one name", save_toy, (_train,), 32),
    Crowd("train, DivideMix", save_toy, (command("train", *QUICK),), 16),
    Crowd("train, overwrite", finished_run, (command("train", *SHORT, "--overwrite"),), 16),
    Crowd("resume one run", half_run, (_resume,), 24),
    Crowd("resume and evaluate", half_run, (_resume, _evaluate), 16),
    Crowd("predict onto one file", model_and_images, (_predict,), 24, all_succeed=True),
    Crowd("export onto one file", model_and_images, (_export,), 16, all_succeed=True),
    Crowd("relabel onto one file", tables, (_relabel,), 24, all_succeed=True),
    Crowd("relabel an .npz file", tables, (_npz,), 16, all_succeed=True),
    Crowd("relabel, one folder", tables, (_cleaned,), 16),
    Crowd("report of one run", finished_run, (_page,), 16, all_succeed=True),
    Crowd("compare, one page", two_runs, (_compare,), 8, all_succeed=True),
    Crowd("resume command", half_run, (command("resume", "run"),), 12),
    Crowd("share onto one file", finished_run, (_share,), 12, all_succeed=True),
    Crowd("review one run", finished_run, (review,), 12),
    Crowd("sweep, one folder", save_toy, (sweep,), 6),
    Crowd("tar shards, one cache", save_tar, _own_runs(TAR, 8), 8, all_succeed=True, each_own=True),
    Crowd("parquet shards, one cache", save_tables, _own_runs(PARQUET, 8), 8, all_succeed=True, each_own=True),
    Crowd("vectors, one cache", save_toy, _own_runs(ENCODED, 8), 8, all_succeed=True, each_own=True),
)


def crowds(top: Path, only: str, step: int) -> Iterator[Tally]:
    """Each crowd, once; with a step, a smaller one."""
    for number, crowd in enumerate(crowd for crowd in CROWDS if only in crowd.name):
        alone, together = top / f"{number}" / "alone" / "here", top / f"{number}" / "together" / "here"
        alone.mkdir(parents=True)
        crowd.inputs(alone)
        shutil.copytree(alone, together)
        first = attempt(crowd.calls[0], alone)
        assert first.code == 0, first
        size = max(2, crowd.number // step)
        outcomes = attempt_together([crowd.calls[i % len(crowd.calls)] for i in range(size)], together)
        tally = Tally("crowds", crowd.name)
        expected, found = left(alone), left(together)
        if crowd.each_own:  # names in the cache come from the paths of the data
            expected = {name: content for name, content in expected.items() if not name.startswith("cache/")}
        found = {name: found[name] for name in found if name in expected or not (is_stray(name) or crowd.each_own)}
        strays = [name for name in left(together) if name.endswith(".tmp") or ".partial" in name]
        final = differences(expected, found) or (f"left: {strays}" if strays else "")
        if not any(outcome.code == 0 for outcome in outcomes):
            final = "none succeeded"
        for outcome in outcomes:
            problem = final or _problem(outcome, crowd)
            tally.add(
                problem and f"{crowd.name}: {problem}", "succeeded" if outcome.code == 0 else "came second, said so"
            )
        yield tally


def _problem(outcome: Outcome, crowd: Crowd) -> str:
    """What is wrong with how one of them ended."""
    if outcome.complaint:
        return outcome.complaint
    if outcome.code == 2 and (crowd.all_succeed or not any(words in outcome.line for words in BUSY)):
        return f"refused: {outcome.line}"
    return ""
