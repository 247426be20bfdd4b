"""Fuzzing that is guided by the code: bytes that reach new lines are varied further. It needs the package atheris.

    python tests/faults/guided.py                       every reader, a minute each
    python tests/faults/guided.py pickle --seconds 600  one reader
    python tests/faults/guided.py --keep                adds what reached new lines to the corpus

A reader gets the bytes as a file of somebody else. It may refuse them by InputError; anything else is a problem. The
corpus has a text file for each reader, with a Python literal of bytes in each line. `test_guided.py` reads it again,
without atheris.
"""

import argparse
import ast
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CORPUS = HERE / "corpus"
_MOST_BYTES = 3000  # of an input
_MOST_KEPT = 60  # of a reader


def targets(folder: Path) -> dict[str, Callable[[bytes], object]]:
    """Each reader as a function of bytes; files are made in the folder."""
    from dividemix.data.noise import parse_noise
    from dividemix.data.readers.coco import read_coco
    from dividemix.data.readers.plain_pickle import read_plain_pickle
    from dividemix.data.readers.tar_shards import _index
    from dividemix.data.shard_files import LocalShard
    from dividemix.data.text_table import read_text_table
    from dividemix.engine.earlier_plans import parse_plans
    from dividemix.judging.records import RunSummary
    from dividemix.planning.job import Job, read_settings
    from dividemix.relabel.decisions import read_decisions
    from dividemix.stored import parse_json

    def of_file(name: str, read: Callable[[Path], object]) -> Callable[[bytes], object]:
        path = folder / name

        def from_bytes(content: bytes) -> object:
            path.write_bytes(content)
            return read(path)

        return from_bytes

    def text_of(read: Callable[[str], object]) -> Callable[[bytes], object]:
        return lambda content: read(content.decode("utf-8", "surrogateescape"))

    return {
        "pickle": lambda content: read_plain_pickle(content, "a pickle"),
        "tar": of_file("shard.tar", lambda path: _index(LocalShard(path), "label")),
        "table": of_file("table.csv", lambda path: list(read_text_table(path, {"path", "label"}).records())),
        "settings": of_file("config.yaml", lambda path: Job.of({"data": "x"} | read_settings(path)).to_yaml()),
        "decisions_json": of_file("decisions.json", read_decisions),
        "decisions_csv": of_file("decisions.csv", read_decisions),
        "coco": of_file("boxes.json", read_coco),
        "summary": lambda content: parse_json(content, RunSummary, "a summary"),
        "noise": text_of(parse_noise),
        "plans": text_of(parse_plans),
    }


def seeds_of(name: str) -> list[bytes]:
    """The reader's corpus."""
    lines = (CORPUS / f"{name}.txt").read_text(encoding="ascii").splitlines()
    return [ast.literal_eval(line) for line in lines]


def attempt(read: Callable[[bytes], object], content: bytes) -> None:
    """Read the bytes; InputError of one line is fine."""
    from dividemix.errors import InputError

    try:
        read(content)
    except InputError as error:
        if "\n" in str(error):
            raise RuntimeError("a message of more than one line") from error


def _fuzz(name: str, arguments: list[str]) -> None:
    """Become the fuzzer of one reader; it ends the process."""
    atheris: Any = import_module("atheris")
    guide: Any = atheris.instrument_imports(include=["dividemix"]) if "-merge=1" not in arguments else nullcontext()
    with guide, tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        read = targets(Path(folder))[name]
        atheris.Setup([sys.argv[0], *arguments], lambda content: attempt(read, content))
        atheris.Fuzz()


def _run(name: str, seconds: int, keep: bool) -> str:
    """Fuzz a reader for so long, in a process of its own; a line that tells what came of it."""
    with tempfile.TemporaryDirectory() as temporary:
        found, crash = Path(temporary, "found"), Path(temporary, "crash-")
        found.mkdir()
        for content in seeds_of(name):
            (found / hashlib.sha1(content).hexdigest()).write_bytes(content)
        flags = [f"-max_total_time={seconds}", f"-max_len={_MOST_BYTES}", f"-artifact_prefix={crash}", "-timeout=60"]
        flags += ["-rss_limit_mb=2000", "-seed=20", "-print_final_stats=1"]
        command = [sys.executable, __file__, "--child", name, *flags, str(found)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        tried = next(_numbers(done.stderr, "stat::number_of_executed_units:"), 0)
        new = sorted((path for path in found.iterdir()), key=lambda path: path.stat().st_size)
        if keep:
            kept = dict.fromkeys([*seeds_of(name), *(path.read_bytes() for path in new)])
            lines = [ascii(content) for content in list(kept)[:_MOST_KEPT]]
            (CORPUS / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="ascii")
        crashes = [ascii(path.read_bytes()) for path in Path(temporary).glob("crash-*")]
        problem = f"   PROBLEM {crashes}\n{done.stderr[-3000:]}" if done.returncode else ""
        return f"guided       {name:28} {tried:8} tried, {len(new)} reached new lines{problem}"


def _numbers(text: str, before: str) -> Iterator[int]:
    for line in text.splitlines():
        if line.startswith(before):
            yield int(line.removeprefix(before))


def main() -> int:
    """The command."""
    if sys.argv[1:2] == ["--child"]:
        _fuzz(sys.argv[2], sys.argv[3:])
    names = sorted(path.stem for path in CORPUS.glob("*.txt"))
    parser = argparse.ArgumentParser(description="Fuzzing that is guided by the code.")
    parser.add_argument("readers", nargs="*", choices=[*names, []], help=f"{', '.join(names)} [all]")
    parser.add_argument("--seconds", type=int, default=60, metavar="N", help="time for each reader [60]")
    parser.add_argument("--keep", action="store_true", help="add what was found to the corpus")
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    held = True
    for name in arguments.readers or names:
        line = _run(name, arguments.seconds, arguments.keep)
        held = held and "PROBLEM" not in line
        print(line, flush=True)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
