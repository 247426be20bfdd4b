"""Fuzzed command lines: every command but those that train for minutes, with words that are paths, numbers or texts."""

import argparse
from typing import Any

from hypothesis import strategies as st
from other_samples import SAMPLES
from scenarios import SHORT

from dividemix.cli import _COMMANDS
from dividemix.methods import METHODS

PATHS = (
    *("run", "model", "images", "images/2.png", "toy.npz", "data.csv", "data.parquet", "data.npz", "photos", "empty"),
    *("table_corrections.csv", "folder_corrections.csv", "bomb.npz", "bomb.pth", "bomb.yaml", "mine.yaml", "loop"),
    *("words.txt", "missing", ".", "..", "/", "", "run/model", "run/checkpoints", "run/label_issues.csv", "new.csv"),
    *(
        "rows.csv",
        "texts.csv",
        "texts.jsonl",
        "vectors.npy",
        "labels.npy",
        "shards",
        "shards/*.tar",
        "tables",
        "votes.csv",
    ),
    *("shards/{000..001}.tar", "{0..999999}{0..999999}.tar", "{0.." + "9" * 5000 + "}.tar", "x://y/z.tar", "zip://x"),
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
    parser = argparse.ArgumentParser()
    add = _COMMANDS[name].add
    needs: dict[str, list[Any]] = {"train": [["train"]], "completion": [argparse.ArgumentParser]}
    more = needs.get(name, [])
    add(parser, *more)
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
}
_NOT_FUZZED = {"reproduce", "sweep"}  # real trainings of minutes


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
    images = draw(st.sampled_from(["toy.npz", "photos", "data.csv", "data.parquet", *PATHS]))
    line = draw(st.sampled_from([[images, *SHORT[1:]], *(samples.words for samples in SAMPLES.values())]))
    flags = [flag for flag in _flags("train") if flag not in _SLOW]
    words = ["train", *line, "--out", draw(st.sampled_from(["new", "run", *PATHS]))]
    if draw(st.booleans()):
        words += ["--method", draw(st.sampled_from([*METHODS, "x"]))]
    for _ in range(draw(st.integers(1, 3))):
        words += [draw(st.sampled_from(flags)), draw(_text)]
    return [*words, "--compile", "never", "--kernels", "torch"]
