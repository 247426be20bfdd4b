"""Damaged files: a hundred damaged versions of each file that is read back (bit flips: test_bit_flips.py).

A damaged file of ours is noticed in one line that changes nothing else, or it is harmless: the result is the same. A
file that a user makes, such as a table or an image, may mean something else when it is changed; then the call must
only end well. Oracle: the result with the whole file.
"""

import itertools
import json
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from disturb import differences
from formats import FORMATS
from other_samples import ENCODED, NUM, PARQUET, SAMPLES, TAR, TEXTS, save_tables, save_texts, train_on, trained_model
from sandbox import Call, attempt, quietly
from scenarios import (
    QUICK,
    SHORT,
    Scenario,
    command,
    finished_run,
    from_python,
    half_run,
    left,
    model_and_images,
    review,
    tables,
    two_runs,
)
from tally import Tally
from tar_shards import write_shards
from toys import save_toy, tree

from dividemix.stored import digest_of


@dataclass(frozen=True)
class Kind:
    """A file below a folder of inputs, a call that reads it, and whether it is ours."""

    file: str  # a pattern that one file matches
    inputs: Callable[[Path], object]
    call: Call
    ours: bool = True
    mend: Callable[[Path], object] | None = None  # makes digests right again
    prints: bool = False  # whether its result is what it prints
    may_change: tuple[str, ...] = ()  # files that need not be the same in the end, such as the damaged one
    of: str = ""  # what the file is of, where others have its name

    @property
    def name(self) -> str:
        """What the table calls it."""
        of = f" of {self.of}" if self.of else ""
        return f"{self.file.replace('*', '')}{of}{' (digest made right)' if self.mend else ''}"


def _mend_model(folder: Path) -> None:
    """Make the digest of a model right: it is no secret."""
    try:
        config = json.loads((folder / "model/config.json").read_bytes())
        about = {name: value for name, value in config.items() if name != "digest"}
        config["digest"] = digest_of((folder / "model/model.safetensors").read_bytes(), about)
    except (ValueError, TypeError, AttributeError, RecursionError):
        return
    (folder / "model/config.json").write_text(json.dumps(config))


def _mend_checkpoint(folder: Path) -> None:
    """Make the digest of the last checkpoint right."""
    path = folder / "run/checkpoints/last/checkpoint.json"
    try:
        index = json.loads(path.read_bytes())
        index["digest"] = digest_of((path.parent / index["tensors"]).read_bytes(), index["facts"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OSError):
        return
    path.write_text(json.dumps(index))


_resume = command("train", "--resume", "--out", "run")
_predict = command("predict", "model", "images", "--out", "out.csv", "--overwrite")
_accept = command("relabel", "toy.npz", "--run", "run", "--accept_above", "0.1", "--out", "corrected.npz")
_compare = command("compare", "run", "other", "--json")


def _run_on_given_labels(folder: Path) -> None:
    """A finished run to which no noise was added, so that its label issues are those of the data; some are flagged."""
    save_toy(folder)
    words = [*QUICK, "--epochs", "4", "--noise", "none", "--holdout", "0", "--method", "dividemix"]
    assert quietly(command("train", *words), folder) == 0


def _reviewed(folder: Path) -> None:
    """A finished run of which two labels are decided."""
    finished_run(folder)
    assert quietly(review, folder) == 0


def _run_from_python(folder: Path) -> None:
    """A finished run on arrays of a program, of which it has a copy."""
    assert quietly(from_python, folder) == 0


def _save_without_test(folder: Path) -> None:
    save_toy(folder, x_test=None, y_test=None)


def _cached(save: Callable[[Path], object], words: list[str]) -> Callable[[Path], object]:
    """Inputs with what a training on them left in the cache."""

    def inputs(folder: Path) -> None:
        save(folder)
        assert quietly(train_on(words), folder) == 0
        shutil.rmtree(folder / "run")

    return inputs


_predict_rows = command("predict", "model", "rows.csv", "--out", "out.csv", "--overwrite")
_predict_texts = command("predict", "model", "texts.csv", "--text_column", "text", "--out", "out.csv", "--overwrite")


def _relabel(data: str, corrections: str) -> Call:
    return command("relabel", data, corrections, "--overwrite")


KINDS = (
    *(
        Kind(f"run/{name}", half_run, _resume)
        for name in ("config.yaml", "metrics.jsonl", "noise.json", "choices.json")
    ),
    Kind("run/env.json", half_run, _resume, may_change=("run/env.json",)),
    *(
        Kind(f"run/checkpoints/{which}/{file}", half_run, _resume)
        for which in ("last", "best")
        for file in ("checkpoint.json", "*.safetensors")
    ),
    Kind("run/checkpoints/last/checkpoint.json", half_run, _resume, ours=False, mend=_mend_checkpoint),
    Kind("run/checkpoints/last/*.safetensors", half_run, _resume, ours=False, mend=_mend_checkpoint),
    Kind("run/summary.json", two_runs, _compare, prints=True),
    Kind("run/label_issues.csv", _run_on_given_labels, _accept),
    Kind("model/config.json", model_and_images, _predict),
    Kind("model/model.safetensors", model_and_images, _predict),
    Kind("model/config.json", model_and_images, _predict, ours=False, mend=_mend_model),
    Kind("model/model.safetensors", model_and_images, _predict, ours=False, mend=_mend_model),
    Kind("images/2.png", model_and_images, _predict, ours=False),
    Kind("toy.npz", half_run, command("train", *SHORT, "--out", "other"), ours=False),
    Kind("data.csv", tables, _relabel("data.csv", "table_corrections.csv"), ours=False),
    Kind("data.parquet", tables, _relabel("data.parquet", "table_corrections.csv"), ours=False),
    Kind("data.npz", tables, _relabel("data.npz", "npz_corrections.csv"), ours=False),
    Kind("table_corrections.csv", tables, _relabel("data.csv", "table_corrections.csv"), ours=False),
    Kind("run/pred_probs.npy", finished_run, review),
    Kind("run/model/config.json", finished_run, review),
    Kind("run/model/model.safetensors", finished_run, review),
    Kind("run/review/corrections.csv", _reviewed, review, ours=False),
    Kind("run/data.npz", _run_from_python, command("report", "run")),
    *(
        Kind(f"model/{file}", trained_model(kind), call, ours=mend is None, mend=mend, of=of)
        for of, kind, call in (("trees", "rows", _predict_rows), ("texts", "texts", _predict_texts))
        for file in ("config.json", "model.safetensors")
        for mend in (None, _mend_model)
    ),
    *(
        Kind(file, SAMPLES[kind].save, train_on(SAMPLES[kind].words), ours=False)
        for file, kind in (
            ("rows.csv", "rows"),
            ("texts.csv", "texts"),
            ("vectors.npy", "vectors"),
            ("labels.npy", "vectors"),
            ("shards/*0.tar", "tar shards"),
            ("tables/*-00000-of-00002.parquet", "parquet shards"),
            ("votes.csv", "votes"),
        )
    ),
    Kind("texts.jsonl", save_texts, train_on(["texts.jsonl", *TEXTS[1:]]), ours=False),
    Kind("cache/shards/*.index", _cached(lambda folder: write_shards(folder / "shards", NUM, 1), TAR), train_on(TAR)),
    Kind("cache/shards/*.images", _cached(lambda folder: save_tables(folder, 1), PARQUET), train_on(PARQUET)),
    Kind("cache/vectors/*/vectors.npy", _cached(_save_without_test, ENCODED), train_on(ENCODED)),
    Kind("cache/vectors/*/chunks.json", _cached(_save_without_test, ENCODED), train_on(ENCODED)),
)
NUM_MUTATIONS = 60


class _Subject:
    """A kind of file with its inputs, and what the call leaves and prints with the whole file."""

    def __init__(self, kind: Kind, top: Path, number: int):
        self.kind, self._template, self._here = kind, top / f"{number}", top / "here"
        shutil.rmtree(self._here, ignore_errors=True)
        Scenario(kind.name, kind.inputs, kind.call, kind.call).prepare(self._here)  # a cache knows the paths of data
        self._here.rename(self._template)
        folder = self.copy()
        (path,) = folder.glob(kind.file)
        self.place, self.content = str(path.relative_to(folder)), path.read_bytes()
        whole = attempt(kind.call, folder)
        assert whole.code == 0, whole
        self.expected, self.out = left(folder), whole.out

    def copy(self) -> Path:
        shutil.rmtree(self._here, ignore_errors=True)
        return Path(shutil.copytree(self._template, self._here))

    def try_content(self, content: bytes) -> tuple[str, str]:
        """The problem with a damaged content, and how the call ended."""
        folder, kind = self.copy(), self.kind
        (folder / self.place).write_bytes(content)
        if kind.mend is not None:
            kind.mend(folder)
        before = tree(folder)
        outcome = attempt(kind.call, folder)
        if outcome.complaint or (folder / "RAN").exists():
            return outcome.complaint or "code was run", ""
        if outcome.code == 2:
            cached = {name: value for name, value in tree(folder).items() if kind.ours or name.split("/")[0] != "cache"}
            changed = differences(before, cached)  # what is whole among a user's files may be cached
            return (f"{outcome.line}, but files changed: {changed}" if changed else ""), "noticed"
        if not kind.ours:
            return "", "read"
        free = {self.place, *kind.may_change}
        wanted, found = (
            {name: value for name, value in one.items() if name not in free} for one in (self.expected, left(folder))
        )
        different = differences(wanted, found)
        if kind.prints and outcome.out != self.out:
            different = different or "what is printed"
        return (f"nothing is said, and the result differs: {different}" if different else ""), "harmless"


def mutations(top: Path, only: str, step: int) -> Iterator[Tally]:
    """Damaged versions of each kind of file."""
    for number, kind in enumerate(kind for kind in KINDS if only in kind.name):
        subject = _Subject(kind, top, number)
        draws = random.Random(kind.name)
        tally = Tally("damage", kind.name)
        for content in itertools.islice(
            FORMATS[Path(subject.place).suffix](subject.content, draws), 0, NUM_MUTATIONS, step
        ):
            if content != subject.content:
                tally.add(*subject.try_content(content))
        yield tally
