"""Fuzzed calls: command lines, the Python interface, readers and settings, drawn by hypothesis.

Each call ends within its memory and a minute, without a traceback; whatever it refuses is one line. Files that run code
when they are imported or unpickled are planted in the working directory; none may run.
"""

import os
import pickle
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from mutations import FORMATS
from sandbox import Call, attempt_in_turn
from scenarios import SHORT, finished_run, model_and_images, tables
from tally import Tally
from toys import SETTINGS, toy_arrays

import dividemix
from dividemix.cli import _COMMANDS, main
from dividemix.data.readers import read_source
from dividemix.errors import InputError
from dividemix.estimator import DivideMixClassifier
from dividemix.methods import METHODS
from dividemix.model.model import Model
from dividemix.planning.job import JOB_FIELDS, Job
from dividemix.settings import fields_of

NUM_CALLS = {"command lines": 1600, "train flags": 1200, "settings": 1500, "Python": 800, "readers": 700}
_SEED = 20
Drawn = tuple[str, Call]  # the call in words, and the call


class _Bomb:
    """Unpickled, it creates the file RAN."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch RAN",)


def prepare(folder: Path) -> None:
    """A folder with inputs of every kind, and planted files that must not run."""
    folder.mkdir(parents=True)
    finished_run(folder)
    model_and_images(folder)
    tables(folder)
    for name in ("planted.py", "numpy.py", "yaml.py", "sitecustomize.py"):
        (folder / name).write_text("open('RAN', 'w').close()\nRAN = None\n")
    (folder / "bomb.pth").write_bytes(pickle.dumps(_Bomb()))
    np.savez(folder / "bomb.npz", x_train=np.array([_Bomb()], dtype=object), y_train=np.zeros(1))
    (folder / "bomb.yaml").write_text("data: !!python/object/apply:os.system ['touch RAN']\n")
    (folder / "mine.yaml").write_text("net: planted:RAN\nmethod: planted:RAN\n")
    (folder / "empty").touch()
    (folder / "loop").symlink_to("loop")
    (folder / "words.txt").write_text("not\0a table")


PATHS = (
    *("run", "model", "images", "images/2.png", "toy.npz", "data.csv", "data.parquet", "data.npz", "photos", "empty"),
    *("table_corrections.csv", "folder_corrections.csv", "bomb.npz", "bomb.pth", "bomb.yaml", "mine.yaml", "loop"),
    *("words.txt", "missing", ".", "..", "/", "", "run/model", "run/checkpoints", "run/label_issues.csv", "new.csv"),
    *("new.npz", "/dev/null", "a" * 300, "\ud800", "planted:RAN", "~", "-", "new/deep/er", "run/report.html"),
)
NUMBERS = (
    "0",
    "1",
    "2",
    "-1",
    "1e308",
    "nan",
    "inf",
    "-inf",
    "0x10",
    "1_0",
    "\\uff19",
    "9" * 30,
    "9" * 5000,
    "1.5",
    "0.1",
)
WORDS = (
    *PATHS,
    *NUMBERS,
    "true",
    "False",
    "none",
    "auto",
    "cpu",
    "cuda:7",
    "meta",
    "symmetric:0.4",
    "file:run/noise.json",
)
_text = st.one_of(st.sampled_from(WORDS), st.text(max_size=12), st.integers().map(str), st.floats().map(str))


def _flags(name: str) -> list[str]:
    """The flags of a command, read from its own parser."""
    import argparse

    parser = argparse.ArgumentParser()
    add = _COMMANDS[name].add
    add(parser, ["train"]) if name == "train" else add(parser)
    found = set(parser._option_string_actions)
    for action in parser._subparsers._group_actions if parser._subparsers else ():
        for choice in dict(action.choices or {}).values():
            found |= set(choice._option_string_actions)
    return sorted(found - {"-h"})


# Flags by which a call would take long, leave the folder or run code, though it does what it was asked for.
_SLOW = {
    "--trust_net",
    "--method",
    "--epochs",
    "--minutes",
    "--extend",
    "--seeds",
    "--net",
    "--net_width",
    "--url",
    "--port",
    "--host",
    "--open",
}
_NOT_FUZZED = {"reproduce", "review", "serve"}  # real trainings of minutes; servers that wait


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    """Words of a command line: a command, some of its arguments and flags, with hostile values."""
    name = draw(st.sampled_from(sorted(set(_COMMANDS) - _NOT_FUZZED - {"train"})))
    words = [name]
    if name == "data":
        words += [draw(st.sampled_from(["check", "x", "--help"]))]  # fetch would ask the network
    for _ in range(draw(st.integers(0, 5))):
        if draw(st.booleans()):
            words.append(draw(st.sampled_from([flag for flag in _flags(name) if flag not in _SLOW] or ["--x"])))
        words.append(draw(_text))
    return words


@st.composite
def train_lines(draw: st.DrawFn) -> list[str]:
    """`dividemix train` on small data with some flags of hostile values; a given flag comes last, so that it wins."""
    data = draw(st.sampled_from(["toy.npz", "photos", "data.csv", "data.parquet", *PATHS]))
    flags = [flag for flag in _flags("train") if flag not in _SLOW]
    words = ["train", data, *SHORT[1:], "--out", draw(st.sampled_from(["new", "run", *PATHS]))]
    if draw(st.booleans()):
        words += ["--method", draw(st.sampled_from([*METHODS, "x"]))]
    for _ in range(draw(st.integers(1, 3))):
        words += [draw(st.sampled_from(flags)), draw(_text)]
    return [*words, "--compile", "never", "--kernels", "torch"]


_VALUES: tuple[Any, ...] = (
    *(None, True, 0, 1, -1, 10**400, 1e308, float("nan"), "", "x", "auto", b"x", [], {}, (), object(), np.array(3)),
    *(
        np.float32(2),
        np.int64(3),
        torch.tensor(2),
        Path("run"),
        Path(),
        {"a": 1},
        [1, 2],
        "symmetric:0.5",
        "1e3",
        _Bomb(),
    ),
)


def _refused_or_fine(words: object, call: Callable[[], object]) -> Drawn:
    """The call; an InputError of one line is fine, and so is a TypeError that names an argument that there is not."""

    def run() -> int:
        try:
            call()
        except InputError as error:
            if "\\n" in str(error):
                raise RuntimeError("more than one line") from error
            print(f"dividemix: error: {error}"[:3000].encode("utf-8", "backslashreplace").decode(), file=sys.stderr)
            return 2
        except TypeError as error:
            if "unexpected keyword argument" not in str(error):
                raise
        except OSError as error:
            print(f"dividemix: error: {error}", file=sys.stderr)
            return 2
        return 0

    return _shown(words), run


def _shown(words: object) -> str:
    try:
        return repr(words)[:700]
    except ValueError:  # an integer of thousands of digits
        return "a huge integer"


@st.composite
def setting_calls(draw: st.DrawFn) -> Drawn:
    """A job with values of any kind for some settings."""
    method = draw(st.sampled_from(sorted(METHODS)))
    names = [*JOB_FIELDS, *fields_of(METHODS[method].settings)]
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=4, unique=True))
    values = {
        name: draw(st.sampled_from(_VALUES) | st.integers() | st.floats() | st.text(max_size=20)) for name in chosen
    }
    return _refused_or_fine(values, lambda: Job.of({"data": "toy.npz", "method": method} | values).to_yaml())


@st.composite
def python_calls(draw: st.DrawFn) -> Drawn:
    """A function of the Python interface with some arguments of any kind."""
    arrays = toy_arrays()
    x, y = arrays["x_train"], arrays["y_train"]
    value = st.sampled_from(_VALUES)
    extra: dict[str, Any] = {"epochs": 1, "warmup_epochs": 1, "progress": False, "out": "new"}
    names = (
        *("out", "preset", "minutes", "overwrite", "progress", "keep_data", "true_labels", "test", "test_labels"),
        *("classes", "image_size", "memory_gb", "noise", "method", "holdout", "labels", "data", "seed", "lr"),
    )
    which = draw(st.sampled_from(["train", "issues", "model", "predict", "run", "classifier", "fit"]))
    changes = {
        name: draw(value) for name in draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
    }
    one, two = draw(value), draw(value)
    given = {"data": x, "labels": y} | SETTINGS | extra | changes
    if which == "train":
        return _refused_or_fine((which, changes), lambda: dividemix.train(**given))
    if which == "issues":
        return _refused_or_fine(
            (which, changes), lambda: dividemix.find_label_issues(**{k: v for k, v in given.items() if k != "out"})
        )
    if which == "model":
        return _refused_or_fine((which, one, two), lambda: Model.from_pretrained(one, two))
    if which == "predict":
        return _refused_or_fine(
            (which, one, two), lambda: Model.from_pretrained("model", "cpu").predict_proba(one, batch_size=two)
        )
    if which == "run":
        return _refused_or_fine((which, one), lambda: dividemix.Run.load(one))
    settings_of = SETTINGS | {"epochs": 1, "warmup_epochs": 1}
    own = dict.fromkeys(draw(st.lists(st.sampled_from(sorted(settings_of)), max_size=1)), one)
    data = (one if draw(st.booleans()) else x, two if draw(st.booleans()) else y)
    if which == "classifier":
        return _refused_or_fine((which, own), lambda: DivideMixClassifier(**{**settings_of, **own}).fit(x, y))
    return _refused_or_fine((which, one, two), lambda: DivideMixClassifier(**settings_of).fit(*data))


READ = ("toy.npz", "data.csv", "data.parquet", "images/2.png", "table_corrections.csv")


@st.composite
def reader_calls(draw: st.DrawFn) -> Drawn:
    """A reader on a file of any bytes, or a mutated one, under an extension that need not be its own."""
    name = draw(st.sampled_from(READ))
    suffix = draw(st.sampled_from([Path(name).suffix, ".npz", ".csv", ".tsv", ".parquet"]))
    rng, steps = random.Random(draw(st.integers(0, 10**9))), draw(st.integers(0, 6))
    raw = draw(st.none() | st.binary(max_size=200))
    size = draw(st.sampled_from([None, 8, 16]))

    def read() -> None:
        content = raw
        if content is None:
            mutated = FORMATS[Path(name).suffix](Path(name).read_bytes(), rng)
            for _ in range(steps + 1):
                content = next(mutated)
        path = Path(f"fuzzed{suffix}")
        path.write_bytes(content or b"")
        read_source(str(path), image_size=size)

    return _refused_or_fine((name, suffix, steps, raw, size), read)


def _line(words: list[str]) -> Drawn:
    return repr(words), lambda: main(words)


KINDS: dict[str, st.SearchStrategy[Drawn]] = {
    "command lines": command_lines().map(_line),
    "train flags": train_lines().map(_line),
    "settings": setting_calls(),
    "Python": python_calls(),
    "readers": reader_calls(),
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
