"""Run directories with a file that is damaged on purpose: one line from every command that reads it, and no other file.

Oracle: the directory before. Who damages a file also makes the digests right, so that the reader behind them is tried.
"""

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from toys import save_toy, toy_job, trained, tree

from dividemix.cli import main
from dividemix.engine.checkpoint import load_checkpoint, save_checkpoint
from dividemix.errors import InputError
from dividemix.planning.choices import Choice
from dividemix.runs.run import Run
from dividemix.stored import digest_of

DEEP = "[" * 100_000
BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12)
)


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run after two of four epochs, with held-out samples and choices."""
    folder = tmp_path_factory.mktemp("damaged")
    save_toy(folder)
    path = trained(folder / "run", toy_job(folder, holdout=0.2, warmup_epochs=1), num_epochs=2).directory.path
    (path / "choices.json").write_text('[{"name": "lr", "value": 0.1, "reason": "a reason"}]')
    return path


@pytest.fixture
def run(half: Path, tmp_path: Path) -> Path:
    """A copy of it to be damaged."""
    return Path(shutil.copytree(half, tmp_path / "run"))


def lines(capsys: pytest.CaptureFixture[str], path: Path, *commands: list[str]) -> list[str]:
    """The one line of each command, which must fail within seconds and change nothing."""
    said = []
    for command in commands:
        before, started = tree(path.parent), time.monotonic()
        capsys.readouterr()
        assert main(command) == 2, command
        assert time.monotonic() - started < 60
        error = capsys.readouterr().err
        assert error.startswith("dividemix: error: ")
        assert error.count("\n") == 1
        assert len(error) < 1500
        assert tree(path.parent) == before
        said.append(error)
    return said


def both(path: Path) -> tuple[list[str], list[str]]:
    """The commands that read a whole run."""
    return ["evaluate", str(path)], ["train", "--resume", "--out", str(path)]


@pytest.mark.parametrize("content", [BOMB, f"data: {DEEP}", "data: &x [*x]", "{" * 100_000, "? " * 100_000])
def test_a_hostile_yaml_file_ends_at_once(run: Path, capsys: pytest.CaptureFixture[str], content: str) -> None:
    """Rows 6 and 8: 443 bytes of nested aliases hung evaluate, --resume and --config; deep nesting was a traceback."""
    (run / "config.yaml").write_text(content)
    config = run.parent / "mine.yaml"
    config.write_text(content)
    said = lines(capsys, run, *both(run), ["train", "toy.npz", "--config", str(config)])
    assert all("not YAML" in line for line in said)


CHOICES: tuple[Any, ...] = (
    {},
    5,
    [5],
    [[]],
    [{}],
    [{"name": "lr"}],
    [{"name": 5, "value": 1, "reason": "a"}],
    [{"name": "lr", "value": 1, "reason": "a", "more": 1}],
)


@pytest.mark.parametrize("content", [*map(json.dumps, CHOICES), DEEP, '{"a":' * 100_000, "", "nonsense"])
def test_choices_of_another_shape(run: Path, capsys: pytest.CaptureFixture[str], content: str) -> None:
    """Row 8: choices.json of another shape was a traceback."""
    (run / "choices.json").write_text(content)
    assert all("choices.json" in line for line in lines(capsys, run, *both(run)))


def rewritten(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the second epoch in metrics.jsonl."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    change(rows[1])
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize(
    "change",
    [
        lambda row: row.update(epocj=row.pop("epoch")),
        lambda row: row.update(epoch=1e308),
        lambda row: row.update(epoch=10**30),
        lambda row: row.update(epoch=1),
        lambda row: row.update(test_acc="90"),
        lambda row: row.update(test_acc=row["test_acc"] + 1),
        lambda row: row.update(val_acc=float("nan")),
        lambda row: row.update(losses=[]),
        lambda row: row.update(losses={"loss": 3}),
        lambda row: row.update(phase=None),
        lambda row: row.update(num_labeled="12"),
        lambda row: row.pop("selects"),
        lambda row: row.clear(),
    ],
)
def test_a_changed_epoch(
    run: Path, capsys: pytest.CaptureFixture[str], change: Callable[[dict[str, Any]], object]
) -> None:
    """Row 8: a changed key in metrics.jsonl, or epoch 1e308, was a traceback; another number passed silently."""
    rewritten(run / "metrics.jsonl", change)
    assert all("metrics.jsonl" in line for line in lines(capsys, run, *both(run)))


@pytest.mark.parametrize("line", [DEEP, '{"a":' * 100_000, "\x00", "\ud83d".encode("utf-8", "surrogatepass")])
def test_a_line_of_metrics_that_is_no_epoch(run: Path, capsys: pytest.CaptureFixture[str], line: str | bytes) -> None:
    """Row 8: JSON nested 100,000 deep overflowed the stack."""
    content = (run / "metrics.jsonl").read_bytes()
    (run / "metrics.jsonl").write_bytes((line.encode() if isinstance(line, str) else line) + b"\n" + content)
    assert all("metrics.jsonl: line 1" in line for line in lines(capsys, run, *both(run)))


@pytest.mark.parametrize("epoch", [1e308, 10**30, -1, 3, "2", None, [2], True])
def test_an_epoch_that_is_none_in_a_checkpoint(run: Path, capsys: pytest.CaptureFixture[str], epoch: Any) -> None:
    """Row 8: epoch 1e308 was a traceback."""
    index = run / "checkpoints" / "last" / "checkpoint.json"
    content = json.loads(index.read_text())
    content["facts"]["epoch"] = epoch
    content["digest"] = digest_of((index.parent / content["tensors"]).read_bytes(), content["facts"])
    index.write_text(json.dumps(content))
    lines(capsys, run, *both(run))


@pytest.mark.parametrize("content", [DEEP, '{"format": 2, "facts":' + '{"a":' * 100_000, "[]", "null", "", "\x00"])
@pytest.mark.parametrize("which", ["last", "best"])
def test_an_index_that_is_none(run: Path, capsys: pytest.CaptureFixture[str], which: str, content: str) -> None:
    """Row 8: JSON nested 100,000 deep."""
    (run / "checkpoints" / which / "checkpoint.json").write_text(content)
    commands = both(run) if which == "last" else (["evaluate", str(run), "--checkpoint", "best"],)
    assert all(f"checkpoints/{which}" in line for line in lines(capsys, run, *commands))


def renamed_tensor(folder: Path, new: Callable[[str], str]) -> None:
    """Give one tensor of a checkpoint another name."""
    tensors, facts = load_checkpoint(folder)
    name = next(name for name in tensors if name.endswith(".weight"))
    tensors[new(name)] = tensors.pop(name)
    save_checkpoint(folder, tensors, tag="epoch-0002", facts=facts)


@pytest.mark.parametrize("which", ["last", "best"])
@pytest.mark.parametrize("new", [lambda name: name[:-1] + "u", lambda name: "x" + name, lambda name: "samples." + name])
def test_a_tensor_of_another_name(
    run: Path, capsys: pytest.CaptureFixture[str], which: str, new: Callable[[str], str]
) -> None:
    """Row 8: a tensor's name flipped in checkpoints/best was a traceback."""
    renamed_tensor(run / "checkpoints" / which, new)
    commands = both(run) if which == "last" else (["evaluate", str(run), "--checkpoint", "best"],)
    assert all(f"{run}" in line for line in lines(capsys, run, *commands))


def test_a_tensor_of_another_shape(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Row 8: the file is whole and its digest right, but it is not what a run of this kind has."""
    folder = run / "checkpoints" / "last"
    tensors, facts = load_checkpoint(folder)
    for kind in ("generator", "nets.", "optimizer."):
        name = next(name for name in tensors if name.startswith(kind) and tensors[name].ndim)
        save_checkpoint(folder, {**tensors, name: tensors[name][:0]}, tag="epoch-0002", facts=facts)
        assert all("checkpoint does not fit" in line for line in lines(capsys, run, *both(run)))


def test_a_checkpoint_cannot_name_code(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Row 7, by another way: the method that checkpoint.json names was imported without trust."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "evil_method.py").write_text("from pathlib import Path\nPath(__file__).with_name('it_ran').touch()\n")
    tensors, facts = load_checkpoint(run / "checkpoints" / "last")
    facts["job"]["method"] = "evil_method:METHOD"
    save_checkpoint(run / "checkpoints" / "last", tensors, tag="epoch-0002", facts=facts)
    assert all("the checkpoint is of another method" in line for line in lines(capsys, run, *both(run)))
    assert not (tmp_path / "it_ran").exists()


def test_a_damaged_best_checkpoint_keeps_its_tensors(run: Path) -> None:
    """Row 8: an index that names another file once cost the tensors that it should have named."""
    folder = run / "checkpoints" / "best"
    (tensors,) = folder.glob("*.safetensors")
    index = json.loads((folder / "checkpoint.json").read_text())
    (folder / "checkpoint.json").write_text(json.dumps(index | {"tensors": f"x{index['tensors']}"}))
    epochs = Run.load(run).epochs()
    next(epochs)
    assert tensors.is_file() or load_checkpoint(folder)[1]["epoch"] == 3  # the old one, or a newer best
    epochs.close()


@pytest.mark.parametrize("content", [DEEP, "[]", "", '{"resumed": 5}', '{"resumed": [5]}', '{"resumed": {"a": 1}}'])
def test_a_damaged_environment_does_not_matter(run: Path, content: str) -> None:
    """Row 8: no result depends on env.json."""
    (run / "env.json").write_text(content)
    assert main(["train", "--resume", "--out", str(run)]) == 0


def test_a_safetensors_header_that_claims_too_much(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Row 8: and model.safetensors the same way."""
    folder = run / "checkpoints" / "last"
    index = json.loads((folder / "checkpoint.json").read_text())
    hostile = (2**62).to_bytes(8, "little") + b"{}"
    (folder / index["tensors"]).write_bytes(hostile)
    index["digest"] = digest_of(hostile, index["facts"])
    (folder / "checkpoint.json").write_text(json.dumps(index))
    assert all("damaged" in line for line in lines(capsys, run, *both(run)))


def test_choices_that_are_gone_are_noticed(tmp_path: Path) -> None:
    """An empty list, or no file, was not compared with the digest: the summary and the page had no reasons then."""
    path = Run.create(tmp_path / "run", toy_job(tmp_path), choices=[Choice("lr", 0.02, "a reason")]).directory.path
    (path / "choices.json").write_text("[]")
    with pytest.raises(InputError, match="its choices are not those that were saved"):
        Run.load(path)


@pytest.mark.parametrize("name", ["\0", "\ud800", "../last/x", "", "/etc/passwd"])
def test_a_checkpoint_names_a_file_next_to_it(tmp_path: Path, name: str) -> None:
    """A name with a NUL character, found by the laboratory, was a traceback."""
    path = tmp_path / "checkpoint.json"
    save_checkpoint(tmp_path, {"a": torch.zeros(1)}, tag="epoch-0001", facts={"epoch": 1})
    path.write_text(json.dumps(json.loads(path.read_text()) | {"tensors": name}))
    with pytest.raises(InputError, match="names a file outside of it"):
        load_checkpoint(tmp_path)
