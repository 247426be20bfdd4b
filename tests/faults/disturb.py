"""Kills and refusals at the file operations of each scenario. Oracle: the files that an undisturbed call leaves.

After a kill, the user repeats or resumes, and all files must be the same to the byte. The same holds after a refusal,
which must also be one clear line, lose no input and leave no temporary file.
"""

import errno
import itertools
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from injected import ANY, CHANGING, GROWING, OPENING, Fault, killing, refusing
from sandbox import Outcome, attempt
from scenarios import Scenario, is_removable, is_stray, left
from tally import Tally

NEVER = 10**9
# The errno, the operations that it meets, and whether only one of them fails. A full disk stays full.
REFUSALS = {
    "full disk": (errno.ENOSPC, GROWING, False),
    "read-only": (errno.EROFS, CHANGING, False),
    "no access": (errno.EACCES, ANY, True),
    "too many open files": (errno.EMFILE, OPENING, False),
    "one too many open files": (errno.EMFILE, OPENING, True),
    "out of memory": (errno.ENOMEM, ANY, True),
    "read or write error": (errno.EIO, ANY, True),
}
# Results of the shorter run: those of a run that is extended are made again when it is resumed.
OUTDATED = ("run/summary.json", "run/model/config.json")
# Wrong where the system refuses.
ADVICE = ("damaged", "start again", "away", "not what was saved", "cut short", "save the model")


class Place:
    """A scenario's inputs, which each attempt gets as a copy, and what an undisturbed call leaves."""

    def __init__(self, scenario: Scenario, top: Path):
        self.scenario, self.top = scenario, top / scenario.name.replace(" ", "_")
        self._template, self._numbers = self.top / "inputs", itertools.count()
        scenario.prepare(self._template)
        self.inputs = left(self._template)
        straight = self.copy()
        first = attempt(scenario.call, straight)
        assert first.code == 0, first
        self.expected, self.out = left(straight), first.out
        shutil.rmtree(straight)

    def copy(self) -> Path:
        """A new folder with the inputs, always under the same path: outputs may have it in them."""
        folder = self.top / "here"
        shutil.rmtree(folder, ignore_errors=True)
        return Path(shutil.copytree(self._template, folder))

    def num_operations(self, kinds: frozenset[str]) -> int:
        """The number of operations of these kinds in an undisturbed call."""
        folder = self.copy()
        return attempt(self.scenario.call, folder, Fault(folder, NEVER, kinds, AssertionError)).num_operations


def kills(place: Place, step: int = 1) -> Tally:
    """A kill at every `step`-th operation that changes something on disk."""
    tally = Tally("kills", place.scenario.name)
    for at in range(0, place.num_operations(CHANGING), step):
        folder = place.copy()
        killed = attempt(place.scenario.call, folder, killing(folder, at))
        problem = "" if killed.signal == 9 else f"not killed: {killed}"
        problem = problem or lost_inputs(place, folder) or repeated(place, folder, strays_allowed=True)
        tally.add(problem and f"{place.scenario.name}, killed at {at}: {problem}", "repeated to the same bytes")
    return tally


def refusals(place: Place, step: int = 1) -> Iterator[Tally]:
    """Each refusal at every `step`-th operation that it meets."""
    for words, (number, kinds, once) in REFUSALS.items():
        tally = Tally("refusals", f"{place.scenario.name}: {words}")
        for at in range(0, place.num_operations(kinds), step):
            folder = place.copy()
            outcome = attempt(place.scenario.call, folder, refusing(folder, at, number, kinds, once=once))
            problem = outcome.complaint or lost_inputs(place, folder)
            end = "same result" if outcome.code == 0 else "one line"
            if not problem:
                problem = same(place, folder) if outcome.code == 0 else refused(outcome, folder, number, once)
                problem = problem or repeated(place, folder, strays_allowed=not once)
            tally.add(problem and f"{tally.what} at {at}: {problem}", end)
        yield tally


def refused(outcome: Outcome, folder: Path, number: int, once: bool) -> str:
    """What is wrong with a call that said no."""
    lines = [line for line in outcome.err.splitlines() if line.startswith("dividemix: error: ")]
    said = outcome.err if outcome.code == 2 else outcome.out + logs(folder)
    if outcome.code == 2 and len(lines) != 1:
        return f"{len(lines)} lines of error: {outcome.err}"
    if wrong := [words for words in ADVICE if words in said]:
        return f"the line says {wrong}, but no file is damaged: {said[-500:]}"
    if os.strerror(number) not in said:
        return f"the line does not say {os.strerror(number)!r}: {said[-500:]}"
    if once and (strays := [name for name in left(folder) if is_stray(name) and not is_removable(name)]):
        return f"temporary files are left: {strays}"
    return ""


def logs(folder: Path) -> str:
    """What the runs of a reproduction printed."""
    return "".join(path.read_text(errors="replace") for path in folder.rglob("*.log"))


def repeated(place: Place, folder: Path, *, strays_allowed: bool) -> str:
    """What is wrong after the user has repeated the call, or resumed the run."""
    outcome = attempt(place.scenario.again, folder)
    if outcome.code != 0:
        return f"the repeat failed: exit code {outcome.code}: {outcome.line} {outcome.error}"
    return same(place, folder, strays_allowed=strays_allowed)


def same(place: Place, folder: Path, *, strays_allowed: bool = False) -> str:
    """Which files differ from those of an undisturbed call."""
    found = left(folder)
    allowed = is_stray if strays_allowed else is_removable
    found = {name: content for name, content in found.items() if name in place.expected or not allowed(name)}
    return differences(place.expected, found)


def differences(expected: dict[str, Any], found: dict[str, Any]) -> str:
    """The names of files that differ, are missing or should not be there."""
    different = sorted(name for name in expected.keys() & found.keys() if expected[name] != found[name])
    missing, added = sorted(expected.keys() - found.keys()), sorted(found.keys() - expected.keys())
    parts = {"different": different, "missing": missing, "added": added}
    return "; ".join(f"{words}: {names}" for words, names in parts.items() if names)


def lost_inputs(place: Place, folder: Path) -> str:
    """Which inputs are gone or changed. The files of a run that is trained on may change, but not vanish."""
    found = left(folder)
    aside = [name for name in found if name.startswith(".run.") and name.endswith(".old/")]
    is_extended = place.scenario.name == "extend" and found["run/config.yaml"] != place.inputs["run/config.yaml"]
    lost = []
    for name, content in place.inputs.items():
        is_run = name.split("/")[0] == "run"
        if is_run and (aside or place.scenario.name == "overwrite"):
            continue
        if name in OUTDATED and is_extended:
            continue
        if (name not in found and "checkpoints/" not in name) or (not is_run and found[name] != content):
            lost.append(name)
    if "run/" in place.inputs and "run/" not in found and not aside:
        lost.append("the run")
    return f"inputs lost: {lost}" if lost else ""
