"""What is disturbed: each command at small size, with its inputs, and what a user does after a disturbance."""

import csv
import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from forked_trainings import fork_trainings
from other_samples import SAMPLES, train_on, trained_model
from sandbox import Call, quietly
from small_model import save_images, small_images, small_model
from toy_plan import quiet_console, toy_plan
from toys import FLAGS, SETTINGS, save_toy, toy_arrays, without_times

from dividemix.api import train
from dividemix.cli import main
from dividemix.errors import InputError
from dividemix.experiments import runner
from dividemix.judging.records import EpochRow
from dividemix.report.of_run import write_report
from dividemix.report.review_server import ReviewServer
from dividemix.runs.run import Run


@dataclass(frozen=True)
class Scenario:
    """A call in a folder of inputs; what a user does after it was disturbed; what may be left then."""

    name: str
    inputs: Callable[[Path], object]
    call: Call
    again: Call

    def prepare(self, folder: Path) -> None:
        """Make a folder with the inputs."""
        folder.mkdir(parents=True)
        self.inputs(folder)


def command(*words: str) -> Call:
    return lambda: main(list(words))


def _simple(name: str, inputs: Callable[[Path], object], *words: str) -> Scenario:
    """A command that is simply repeated."""
    return Scenario(name, inputs, command(*words), command(*words))


QUICK = ["toy.npz", *FLAGS, "--epochs", "2", "--noise", "symmetric:0.4", "--holdout", "0.2", "--out", "run"]
SHORT = [*QUICK, "--method", "cross_entropy"]
SHORT = [word for i, word in enumerate(SHORT) if "warmup_epochs" not in (word.lstrip("-"), SHORT[i - 1].lstrip("-"))]


def half_run(folder: Path) -> None:
    """A run after one of two epochs, stopped as a signal does it."""
    save_toy(folder)
    really_train = Run.epochs

    def one_epoch(run: Run) -> Iterator[EpochRow]:
        with closing(really_train(run)) as epochs:
            yield next(epochs)
        raise KeyboardInterrupt

    Run.epochs = one_epoch  # type: ignore[method-assign, assignment]
    try:
        assert quietly(command("train", *SHORT), folder) == 130
    finally:
        Run.epochs = really_train  # type: ignore[method-assign]
    assert not (folder / "run" / "summary.json").exists()
    env = folder / "run" / "env.json"  # begun elsewhere
    env.write_text(json.dumps(json.loads(env.read_text()) | {"platform": "another"}))


def finished_run(folder: Path) -> None:
    """A finished run of another seed, which is to be overwritten."""
    save_toy(folder)
    assert quietly(command("train", *SHORT, "--seed", "9"), folder) == 0


def two_runs(folder: Path) -> None:
    """Two finished runs on the same data."""
    finished_run(folder)
    shutil.copytree(folder / "run", folder / "other")


def _as_command(call: Callable[[], object]) -> Call:
    """A call from Python whose errors are printed as the command line does."""

    def run() -> int:
        try:
            call()
        except (InputError, OSError) as error:
            print(" ".join(f"dividemix: error: {error}".split()), file=sys.stderr)
            return 2
        return 0

    return run


def _from_python() -> None:
    arrays, settings = toy_arrays(), SETTINGS | {"epochs": 2, "warmup_epochs": 1}
    train(arrays["x_train"], arrays["y_train"], out="run", progress=False, **settings)


from_python = _as_command(_from_python)


def _from_python_again() -> None:
    if not Path("run").exists():
        return _from_python()
    run = Run.load("run")
    run.train()
    write_report(run)
    return None


def model_and_images(folder: Path) -> None:
    small_model().save_pretrained(folder / "model")
    save_images(folder / "images", small_images(5), [f"{number}.png" for number in range(5)])


CORRECTIONS = "index,path,given_label,new_label,action\n0,{0},cat,dog,choose\n2,{2},cat,cat,keep\n"


def tables(folder: Path) -> None:
    """Tables and a folder of the same images, and corrections for each."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [f"{'cat' if number % 2 == 0 else 'dog'}/{number}.png" for number in range(6)]
    save_images(folder / "photos", small_images(6), names)
    rows = [[f"photos/{name}", name.partition("/")[0]] for name in names]
    with (folder / "data.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([["path", "label"], *rows])
    columns = {"path": [path for path, _ in rows], "label": [label for _, label in rows]}
    pq.write_table(pa.table(columns), folder / "data.parquet")
    labels = np.arange(6) % 2
    np.savez(folder / "data.npz", x_train=small_images(6), y_train=labels, classes=np.array(["cat", "dog"]))
    (folder / "table_corrections.csv").write_text(CORRECTIONS.format(*[path for path, _ in rows]))
    (folder / "npz_corrections.csv").write_text(CORRECTIONS.format("", "", ""))
    in_folder = sorted(names)
    (folder / "folder_corrections.csv").write_text(
        f"index,path,given_label,new_label,action\n0,{in_folder[0]},cat,dog,choose\n"
    )


_cleaned = command("relabel", "photos", "folder_corrections.csv", "--copy_to", "cleaned")


def _cleaned_again() -> int | None:
    return 0 if Path("cleaned").exists() else _cleaned()  # it appears whole or not at all


def _reproduce() -> int:
    fork_trainings()
    plan = toy_plan(2)
    try:
        return runner.reproduce(plan, Path("out"), num_workers=1, command="", console=quiet_console())
    except (InputError, OSError) as error:
        print(" ".join(f"dividemix: error: {error}".split()), file=sys.stderr)
        return 2


def sweep() -> int:
    fork_trainings()
    place = SHORT.index("--out")
    return main(["sweep", "toy.npz", "--vary", "lr=0.01,0.02", *SHORT[1:place], *SHORT[place + 2 :], "--out", "sweep"])


def _extend_again() -> int:
    """What a user does whose extension was disturbed: resume it, or ask again if nothing was extended."""
    is_extended = "epochs: 3" in Path("run/config.yaml").read_text()
    return main(["resume", "run"] if is_extended else ["resume", "run", "--extend", "1"])


def review() -> int:
    """`dividemix review`, asked for two decisions by a page, and ended by Ctrl-C."""

    def serve(server: ReviewServer, *_: object) -> None:
        for index, action in ((0, "keep"), (1, "accept")):
            body = json.dumps({"changes": [[index, action, ""]]}).encode()
            answer = server.post(f"{urlsplit(server.url).path}decisions", body)
            assert answer.status == 200, answer
        raise KeyboardInterrupt

    ReviewServer.serve_forever = serve  # type: ignore[assignment, method-assign]
    return main(["review", "run"])


SCENARIOS = (
    Scenario("train", save_toy, command("train", *QUICK), command("train", *QUICK, "--resume")),
    Scenario("train short", save_toy, command("train", *SHORT), command("train", *SHORT, "--resume")),
    Scenario("train from Python", lambda _: None, from_python, _as_command(_from_python_again)),
    _simple("resume", half_run, "train", "--resume", "--out", "run"),
    _simple("overwrite", finished_run, "train", *SHORT, "--overwrite"),
    Scenario("reproduce", lambda _: None, _reproduce, _reproduce),
    _simple("predict", model_and_images, "predict", "model", "images", "--out", "out.csv", "--overwrite"),
    _simple("export pt2", model_and_images, "export", "model", "--format", "pt2", "--out", "out.pt2"),
    _simple("export onnx", model_and_images, "export", "model", "--format", "onnx", "--out", "out.onnx"),
    _simple("relabel table", tables, "relabel", "data.csv", "table_corrections.csv", "--overwrite"),
    _simple("relabel parquet", tables, "relabel", "data.parquet", "table_corrections.csv", "--overwrite"),
    _simple("relabel npz", tables, "relabel", "data.npz", "npz_corrections.csv", "--overwrite"),
    _simple("relabel folder", tables, "relabel", "photos", "folder_corrections.csv", "--overwrite"),
    Scenario("relabel copy", tables, _cleaned, _cleaned_again),
    _simple("evaluate", finished_run, "evaluate", "run"),
    _simple("resume command", half_run, "resume", "run"),
    Scenario("extend", finished_run, command("resume", "run", "--extend", "1"), _extend_again),
    _simple("report", finished_run, "report", "run"),
    _simple("share datalab", finished_run, "share", "run", "--to", "datalab", "--overwrite"),
    _simple("share datasets", finished_run, "share", "run", "--to", "datasets", "--overwrite"),
    Scenario("review", finished_run, review, review),
    _simple("compare", two_runs, "compare", "run", "other", "--out", "page.html"),
    Scenario("sweep", save_toy, sweep, sweep),
    *(
        Scenario(f"train {kind}", one.save, train_on(one.words), train_on([*one.words, "--resume"]))
        for kind, one in SAMPLES.items()
    ),
    _simple("predict rows", trained_model("rows"), "predict", "model", "rows.csv", "--out", "out.csv", "--overwrite"),
)


MEASURED = ("command", "estimated_seconds")  # of env.json: what equal trainings need not have in common


def left(folder: Path) -> dict[str, Any]:
    """Every file below a folder, apart from what a clock measured and the command that was typed."""
    files: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        name, content = str(path.relative_to(folder)), b"" if path.is_dir() else path.read_bytes()
        if path.is_dir():
            files[f"{name}/"] = None
        elif path.name == "metrics.jsonl":
            files[name] = [without_times(line) for line in content.splitlines()]
        elif path.name == "metrics.csv":  # its third column is the time
            files[name] = [line.split(b",")[:2] + line.split(b",")[3:] for line in content.splitlines()]
        elif path.name == "summary.json":
            files[name] = without_times(content)
        elif path.name == "env.json":
            files[name] = {key: value for key, value in json.loads(content).items() if key not in MEASURED}
        elif path.name == "sweep.csv":  # its last column but one is the time
            files[name] = [line.split(b",")[:-2] for line in content.splitlines()]
        elif path.suffix == ".log" or path.name == "sweep.md":  # the same, to be read by people
            files[name] = ""
        else:
            files[name] = content
    return files


def is_removable(name: str) -> bool:
    """Whether a file is of a run that was overwritten, or of an older checkpoint: the next start or save removes it.

    It is left where the system refused to remove it.
    """
    return bool(re.match(r"\.run\.\w+\.old/", name) or re.search(r"checkpoints/\w+/epoch-.*safetensors$", name))


def is_stray(name: str) -> bool:
    """Whether a file is removable, or a temporary one, which only a killed process may leave."""
    return is_removable(name) or name.rstrip("/").endswith(".tmp")
