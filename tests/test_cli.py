"""The command line against what it printed, left on disk and returned; settings against dicts overlaid by hand.

Every error must be one line, exit code 2, and leave the working directory as it was.
"""

import contextlib
import dataclasses
import errno
import io
import itertools
import json
import os
import pickle
import re
import resource
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from faults import full_disk
from PIL import Image
from toys import FLAGS, NUM_TRAIN, SETTINGS, save_toy, settled, toy_arrays, tree

from dividemix.cli import main
from dividemix.config import Config
from dividemix.engine.checkpoint import load_checkpoint
from dividemix.nets.build import build_net
from dividemix.planning.job import Job
from dividemix.planning.presets import PRESETS, preset_fields

QUICK = ["toy.npz", *FLAGS, "--epochs", "2", "--warmup_epochs", "1"]


@pytest.fixture(autouse=True)
def _workshop(tmp_path, monkeypatch):
    """A working directory with toy.npz; one thread, since more only wait for each other here."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    save_toy(tmp_path)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def succeed(*arguments):
    assert main(["train", *arguments]) == 0


def fail(capsys, arguments):
    """The line on stderr of a command that must fail and change nothing."""
    capsys.readouterr()
    before = tree_here()
    assert main(arguments) == 2
    return the_line(capsys.readouterr().err, before)


def the_line(error, before):
    """The error line, after the look at what must not have happened."""
    assert error.startswith("dividemix: error: ")
    assert error.endswith("\n")
    assert error.count("\n") == 1
    assert "Traceback" not in error
    assert tree_here() == before
    return error


def tree_here():
    return tree(Path())


def shown(capsys, *arguments):
    """What a command that ends in SystemExit(0) prints."""
    with pytest.raises(SystemExit) as caught:
        main(list(arguments))
    assert caught.value.code == 0
    return capsys.readouterr().out


def spawn(code, *arguments):
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)


ENTRY = "from dividemix.cli import main; raise SystemExit(main())"

# Help, settings, presets


def test_help_as_a_process():
    done = spawn(ENTRY, "--help")
    assert done.returncode == 0
    assert all(command in done.stdout for command in ("train", "evaluate", "presets"))
    assert done.stderr == ""


def test_help_is_quick_because_it_imports_nothing_heavy():
    code = (
        "import sys; from dividemix.cli import main\n"
        "for words in (['--help'], ['train', '--help']):\n"
        "    try: main(words)\n"
        "    except SystemExit: pass\n"
        "main(['presets'])\n"
        "assert not {'torch', 'numpy', 'rich'} & set(sys.modules)"
    )
    done = spawn(code)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("field", dataclasses.fields(Config), ids=lambda field: field.name)
def test_the_help_of_train_has_every_setting(capsys, field):
    text = " ".join(shown(capsys, "train", "--help").split())
    default = str(field.default).lower() if isinstance(field.default, bool) else field.default
    assert f"--{field.name} " in text
    assert f"{field.metadata['doc']} [{default}]" in text


def test_the_help_of_train_has_every_other_flag(capsys):
    text = shown(capsys, "train", "--help")
    others = "root limit_train noise preset method out resume overwrite config print_config"
    assert all(f"--{name} " in text for name in others.split())
    assert "DATA" in text


def test_version(capsys):
    assert shown(capsys, "--version").strip() == version("dividemix")


def printed(capsys, *arguments):
    """The settings that --print_config shows."""
    succeed(*arguments, "--print_config")
    return capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        QUICK,
        ["cifar10", "--root", "somewhere: else", "--preset", "cifar10-sym-90", "--noise", "symmetric:0.9"],
        ["fashion", "--method", "cross_entropy", "--limit_train", "100", "--lr", "1e-7", "--flip", "false"],
    ],
)
def test_print_config_as_config_gives_the_same(tmp_path, capsys, arguments):
    first = printed(capsys, *arguments)
    (tmp_path / "c.yaml").write_text(first)
    assert yaml.safe_load(printed(capsys, "--config", "c.yaml")) == yaml.safe_load(first)
    assert ("# before it, the same by --method cross_entropy" in first) == (not arguments)
    assert set(yaml.safe_load(first)) > {field.name for field in dataclasses.fields(Config)}


def test_printing_the_settings_starts_nothing(capsys):
    before = tree_here()
    printed(capsys, *QUICK)
    assert tree_here() == before


def test_flags_win_over_the_file_which_wins_over_the_preset_in_any_order(tmp_path, capsys):
    preset = preset_fields("cifar10-sym-90")
    file = {"lr": 0.5, "lambda_u": 7.0, "loss_window": 3, "noise": "symmetric:0.9"}
    flags = {"lambda_u": 9.0, "seed": 5}
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(file))
    groups = [
        ["cifar10"],
        ["--preset", "cifar10-sym-90"],
        ["--config", "c.yaml"],
        ["--lambda_u", "9", "--seed", "5"],
    ]
    expected = Job(data="cifar10").values()
    expected |= dataclasses.asdict(Config()) | preset | file | flags
    for order in itertools.permutations(groups):
        assert yaml.safe_load(printed(capsys, *itertools.chain(*order))) == expected


def test_each_kind_of_data_has_its_preset(capsys):
    expected = dataclasses.asdict(Config()) | preset_fields("fashion")
    found = yaml.safe_load(printed(capsys, "fashion"))
    assert {name: found[name] for name in expected} == expected
    found = yaml.safe_load(printed(capsys, "fashion", "--preset", "cifar100-sym-90"))
    expected = dataclasses.asdict(Config()) | preset_fields("cifar100-sym-90")
    assert {name: found[name] for name in expected} == expected
    found = yaml.safe_load(printed(capsys, "cifar10"))
    assert {name: found[name] for name in expected} == dataclasses.asdict(Config())
    found = yaml.safe_load(printed(capsys, "toy.npz"))
    expected = {name: value for name, value in preset_fields("default").items() if name != "warmup_epochs"}
    assert {name: found[name] for name in expected} == expected


def test_presets_are_listed_with_their_origin_and_numbers(capsys):
    assert main(["presets"]) == 0
    text = capsys.readouterr().out
    for name, preset in PRESETS.items():
        assert name in text
        assert preset.origin in text
        assert all(f"{key}={value}" in text for key, value in preset.fields.items())


# Training


def test_a_training_shows_its_epochs_and_a_table(capsys):
    succeed(*QUICK, "--noise", "symmetric:0.4", "--out", "run")
    said = capsys.readouterr().out
    assert (
        "dividemix on toy.npz: 40 images of 4 classes; noise symmetric:0.4, 32.5% of the labels are wrong now" in said
    )
    assert "epoch 1/2  warmup" in said
    assert "epoch 2/2  mix" in said
    assert "look wrong; report.html to look at" in " ".join(said.split())
    assert "─" in said


@pytest.mark.slow
def test_without_data_two_runs_and_a_table(capsys):
    arguments = ["--limit_train", "200", "--epochs", "2", "--warmup_epochs", "1", "--net_width", "4"]
    succeed(*arguments)
    said = capsys.readouterr().out
    runs = sorted(Path("runs").iterdir())
    assert [run.name for run in runs] == [
        "fashion-symmetric-0.5-cross_entropy-seed1",
        "fashion-symmetric-0.5-dividemix-seed1",
    ]
    summaries = [json.loads((run / "summary.json").read_text()) for run in runs]
    assert all(f"\n{run}: " in said for run in runs)
    table = [line.replace("│", " ").split() for line in said.splitlines() if line.startswith("│")]
    assert [row[0] for row in table] == ["cross_entropy", "dividemix"]
    for row, summary in zip(table, summaries, strict=True):
        assert row[1:4] == [f"{summary[name]:.2f}" for name in ("final_acc", "best_acc", "last_acc")]
    assert summaries[0]["noise"] == summaries[1]["noise"]

    before = tree_here()
    succeed(*arguments, "--resume")
    assert capsys.readouterr().out.splitlines()[-6:] == said.splitlines()[-6:]
    assert tree_here() == before


def test_evaluate_gives_the_accuracy_of_the_summary(capsys):
    succeed(*QUICK, "--out", "run")
    summary = json.loads(tree_here()["run/summary.json"])
    before = tree_here()
    for checkpoint, accuracy in (("last", summary["final_acc"]), ("best", summary["best_acc"])):
        capsys.readouterr()
        assert main(["evaluate", "run", "--checkpoint", checkpoint]) == 0
        said = capsys.readouterr().out
        assert f"run: dividemix, {checkpoint} checkpoint, 12 test images" in said
        assert f"accuracy {accuracy:.2f} %" in said
    capsys.readouterr()
    main(["evaluate", "run"])
    table = [line.replace("│", " ").split() for line in capsys.readouterr().out.splitlines() if line[:1] == "│"]
    assert table == [[name, f"{recall:.1f}"] for name, recall in summary["class_recall"].items()]
    assert tree_here() == before


def test_resume_without_a_run_starts_it(tmp_path):
    succeed(*QUICK, "--out", "straight")
    succeed(*QUICK, "--out", "resumed", "--resume")
    assert settled(tmp_path / "resumed") == settled(tmp_path / "straight")


def test_a_run_resumes_from_its_directory_alone(tmp_path, capsys, monkeypatch):
    succeed(*QUICK, "--out", "straight")
    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(RuntimeError):
        patch.setattr("dividemix.display.epoch_line", _stop)
        main(["train", *QUICK, "--out", "stopped"])
    assert "stopped/summary.json" not in tree_here()
    succeed("--resume", "--out", "stopped")
    assert "going on after epoch 1" in capsys.readouterr().out
    assert settled(tmp_path / "stopped") == settled(tmp_path / "straight")


def _stop(*_):
    raise RuntimeError("as if something had broken after the first epoch")


def test_overwrite_replaces_a_run(tmp_path):
    succeed(*QUICK, "--out", "run", "--seed", "2")
    other = settled(tmp_path / "run")
    succeed(*QUICK, "--out", "run", "--overwrite")
    succeed(*QUICK, "--out", "fresh")
    assert settled(tmp_path / "run") == settled(tmp_path / "fresh") != other


def test_names_with_brackets_are_shown_as_they_are(tmp_path, capsys):
    """Square brackets are markup to the library that prints."""
    (tmp_path / "x[").mkdir()
    (tmp_path / "toy.npz").rename(tmp_path / "x[" / "b].npz")
    succeed("x[/b].npz", *QUICK[1:], "--out", "[bold]run[/b]")
    said = capsys.readouterr().out
    assert "dividemix on x[/b].npz: " in said
    assert "\n[bold]run[/b]: " in said


def test_a_factory_of_the_users_own(tmp_path):
    (tmp_path / "my_nets.py").write_text(
        "from torch import nn\n"
        "def make(num_classes):\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(64, num_classes))\n"
    )
    succeed(*QUICK, "--net", "my_nets:make", "--out", "run")
    assert "nets.1.1.weight" in load_checkpoint(tmp_path / "run" / "checkpoints" / "last")[0]


@pytest.mark.parametrize(
    "command",
    [["evaluate", "run"], ["train", "--resume", "--out", "run"], ["predict", "run", "image.png", "--out", "table.csv"]],
)
def test_a_net_that_a_directory_names_is_imported_only_by_who_trusts_it(tmp_path, capsys, command):
    (tmp_path / "their_nets.py").write_text(
        "from torch import nn\n"
        "def make(num_classes):\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(64, num_classes))\n"
    )
    Image.new("L", (8, 8)).save(tmp_path / "image.png")
    succeed(*QUICK, "--net", "their_nets:make", "--out", "run")
    assert "its net 'their_nets:make' is Python code" in fail(capsys, command)
    assert main([*command, "--trust_net"]) == 0


def test_out_of_memory_is_one_line(capsys, monkeypatch):
    for where, said in (
        ("runs.run.metrics_row", "(0 epochs are saved)"),
        ("planning.prepare.gather", "take smaller images"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(f"dividemix.{where}", lambda *_: torch.empty(2**60))
            assert main(["train", *QUICK, "--out", "run", "--overwrite"]) == 2
        error = capsys.readouterr().err
        assert error.startswith("dividemix: error: out of memory: take ")
        assert said in error
        assert error.count("\n") == 1


def test_the_working_directory_as_data_gives_the_run_its_name(tmp_path, monkeypatch):
    for name in ("a", "b"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for i in range(4):
            Image.new("L", (8, 8), 50 * i).save(tmp_path / "photos" / name / f"{i}.png")
    monkeypatch.chdir(tmp_path / "photos")
    succeed(".", *FLAGS, "--epochs", "1", "--warmup_epochs", "1")
    assert [path.name for path in Path("runs").iterdir()] == ["photos-dividemix-seed1"]


def test_ctrl_c_before_the_training_is_no_traceback(capsys, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("dividemix.planning.prepare.gather", interrupted)
    before = tree_here()
    try:
        code = main(["train", *QUICK, "--out", "run"])
    except KeyboardInterrupt:  # would end the whole test session
        pytest.fail("the interrupt came through as a traceback")
    assert code == 130
    assert "Traceback" not in capsys.readouterr().err
    assert tree_here() == before


# Errors


def npz(**changes):
    """Train on toy data with these changes."""

    def make(folder):
        save_toy(folder, **changes)
        return ["toy.npz"]

    return make


def flags(*words):
    """Train on the toy data with these words."""
    return lambda folder: ["toy.npz", *words]


def words(*words):
    """Train with these words alone."""
    return lambda folder: list(words)


def text(name, content, *words):
    """Train with these words beside a file of this content."""

    def make(folder):
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return list(words)

    return make


def labels(**changes):
    """The toy's training labels with some changed: index_7=9."""
    changed = toy_arrays()["y_train"].astype(changes.pop("dtype", np.int64))
    for name, value in changes.items():
        changed[int(name.removeprefix("index_"))] = value
    return changed


def cifar(damage=lambda content: content, **batches):
    """Train on a CIFAR-10 archive of a few images, some of its batches replaced, its bytes damaged."""

    def make(folder):
        written = io.BytesIO()
        with tarfile.open(fileobj=written, mode="w:gz") as archive:
            for name in [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]:
                rng = np.random.default_rng(0)
                rows = rng.integers(0, 256, (4, 3072), dtype=np.uint8)
                batch = batches.get(name) or pickle.dumps({"data": rows, "labels": [0, 1, 2, 3]}, 2)
                member = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
                member.size = len(batch)
                archive.addfile(member, io.BytesIO(batch))
        (folder / "cifar-10-python.tar.gz").write_bytes(damage(written.getvalue()))
        return ["cifar10", "--root", "cifar-10-python.tar.gz"]

    return make


def flipped(content):
    """The bytes with one bit in the middle turned over."""
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 16]) + content[middle + 1 :]


class Hostile:
    """A pickle that leaves a file where it is loaded."""

    def __reduce__(self):
        return os.system, ("touch owned",)


MATRIX = ["--noise", "matrix:flips.csv"]
IDENTITY = "1 0 0 0\n0 1 0 0\n0 0 1 0\n"

MISTAKES = {
    "missing file": (words("nowhere.npz"), "nowhere.npz: no such file"),
    "missing root": (words("cifar10", "--root", "nowhere"), "nowhere: no such file or folder"),
    "no root": (words("cifar10"), "cifar10 needs --root"),
    "truncated archive": (cifar(lambda content: content[:-50]), "cifar-10-python.tar.gz: truncated, corrupted"),
    "archive cut in half": (cifar(lambda content: content[: len(content) // 2]), "truncated, corrupted"),
    "corrupted archive": (cifar(flipped), "cifar-10-python.tar.gz: "),
    "no archive at all": (cifar(lambda content: b"<html>404</html>"), "not a .tar.gz"),
    "truncated npz": (text("toy.npz", b"PK\x03\x04 and no more", "toy.npz"), "toy.npz: not an .npz file, or cut short"),
    "hostile pickle": (cifar(data_batch_2=pickle.dumps(Hostile(), 2)), "system'"),
    "hostile pickle in a batch": (
        cifar(test_batch=pickle.dumps({"data": Hostile(), "labels": [0]}, 4)),
        "only arrays of whole numbers are read",
    ),
    "hostile pickle in an npz": (npz(x_train=np.array([Hostile()], dtype=object)), "toy.npz: .*Python objects"),
    "float images": (npz(x_train=toy_arrays()["x_train"] / 255), "x_train holds float64: uint8 is needed"),
    "flat images": (npz(x_train=np.zeros((NUM_TRAIN, 64), np.uint8)), r"x_train has shape \(40, 64\)"),
    "four channels": (npz(x_train=np.zeros((NUM_TRAIN, 8, 8, 4), np.uint8)), "1 or 3 channels"),
    "test images of another size": (npz(x_test=np.zeros((12, 9, 8), np.uint8)), "x_test has images of"),
    "label out of range": (npz(y_train=labels(index_7=255)), "y_train holds label 255"),
    "test label out of range": (npz(y_test=np.full(12, 255)), "y_test holds label 255"),
    "label beyond the names": (
        npz(classes=np.array(["a", "b", "c"])),
        "y_train holds label 3, but labels go from 0 to 2",
    ),
    "test label beyond the names": (
        npz(classes=np.array(["a", "b", "c", "d"]), y_test=np.full(12, 4)),
        "y_test holds label 4",
    ),
    "cifar label out of range": (
        cifar(data_batch_1=pickle.dumps({"data": np.zeros((1, 3072), np.uint8), "labels": [10]}, 2)),
        "data_batch_1: labels holds label 10",
    ),
    "negative label": (npz(y_train=labels(index_0=-1)), "y_train holds label -1"),
    "fractional label": (npz(y_train=labels(dtype=np.float64, index_3=0.5)), "y_train holds 0.5"),
    "nan as a label": (npz(y_train=labels(dtype=np.float64, index_3=np.nan)), "y_train holds nan"),
    "labels of another length": (npz(y_train=labels()[:-1]), r"y_train has shape \(39,\)"),
    "test labels of another length": (npz(y_test=np.zeros(13, int)), r"y_test has shape \(13,\)"),
    "true labels of another length": (npz(y_true=labels()[1:]), r"y_true has shape \(39,\)"),
    "one class": (npz(y_train=np.zeros(NUM_TRAIN, int), y_test=np.zeros(12, int)), "at least two classes"),
    "one class in training": (npz(y_train=np.ones(NUM_TRAIN, int)), "at least two classes"),
    "one sample": (npz(x_train=np.zeros((1, 8, 8), np.uint8), y_train=np.zeros(1, int)), "at least two"),
    "no sample": (npz(x_train=np.zeros((0, 8, 8), np.uint8), y_train=np.zeros(0, int)), "holds no pixels"),
    "less than a sample for each class": (flags("--limit_train", "3"), "limit_train is 3: at least 4"),
    "unknown data set": (words("cifar11"), "unknown data set 'cifar11': known are fashion, cifar10, cifar100"),
    "unknown preset": (flags("--preset", "best"), "unknown preset 'best': known are default, cifar10-sym-20"),
    "unknown net": (flags("--net", "resnet9000"), "unknown net 'resnet9000': known are .*small_cnn"),
    "net that cannot be imported": (flags("--net", "no_such_module:make"), "'no_such_module:make' cannot be imported"),
    "net that is none": (flags("--net", "os:getcwd"), "net 'os:getcwd' does not fit"),
    "unknown flag": (flags("--lamda_u", "3"), "unknown flag --lamda_u: did you mean --lambda_u"),
    "unlike any flag": (flags("--xyzzy=3"), "unknown flag --xyzzy"),
    "unknown method": (flags("--method", "magic"), "unknown method 'magic': known are dividemix, cross_entropy"),
    "unknown device": (flags("--device", "abacus"), "device 'abacus' is not available"),
    "unknown noise kind": (flags("--noise", "gauss:0.5"), "noise 'gauss:0.5' is unknown: use .*symmetric:RATE"),
    "noise without its map": (flags("--noise", "asymmetric:0.4"), "no map of similar classes"),
    "rate above one": (flags("--noise", "symmetric:1.5"), "rate of symmetric noise is 1.5: a number from 0 to 1"),
    "rate below zero": (flags("--noise", "pair_flip:-0.1"), "rate of pair_flip noise is -0.1"),
    "rate nan": (flags("--noise", "symmetric:nan"), "rate of symmetric noise is nan"),
    "rate in words": (flags("--noise", "symmetric:half"), "rate of symmetric noise is 'half'"),
    "no rate": (flags("--noise", "symmetric"), "incomplete: use symmetric:RATE"),
    "matrix missing": (flags(*MATRIX), "flips.csv cannot be read"),
    "matrix rows that do not sum to 1": (
        text("flips.csv", IDENTITY + "0.1 0 0 0.8\n", "toy.npz", *MATRIX),
        "flips.csv: row 4 sums to 0.9; every row must sum to 1",
    ),
    "matrix of another size": (text("flips.csv", IDENTITY, "toy.npz", *MATRIX), r"shape \(3, 4\): \(4, 4\) is needed"),
    "matrix with a negative number": (
        text("flips.csv", IDENTITY + "-1 1 1 0\n", "toy.npz", *MATRIX),
        "row 4 has -1; numbers from 0 to 1",
    ),
    "missing config": (words("--config", "c.yaml"), "c.yaml: cannot be read"),
    "config that is no YAML": (text("c.yaml", "lr: [", "--config", "c.yaml"), "c.yaml: not YAML"),
    "config with an unknown name": (
        text("c.yaml", "lamda_u: 3", "--config", "c.yaml"),
        "c.yaml: unknown setting 'lamda_u'",
    ),
    "config with a list as data": (text("c.yaml", "data: [a, b]", "--config", "c.yaml"), r"data is \['a', 'b'\]"),
    "config with a number as noise": (text("c.yaml", "noise: 0.5", "toy.npz", "--config", "c.yaml"), "noise is 0.5"),
    "config with a list as method": (text("c.yaml", "method: [a]", "toy.npz", "--config", "c.yaml"), "method is"),
    "config with a number as root": (text("c.yaml", "root: 5", "toy.npz", "--config", "c.yaml"), "root is 5"),
    "number out of range": (flags("--lr", "-1"), "lr is -1.0: a number above 0"),
    "number that is none": (flags("--lr", "fast"), "--lr: invalid float value: 'fast'"),
    "more warm-up than epochs": (flags("--epochs", "1", "--warmup_epochs", "2"), "warmup_epochs is 2"),
    "neither true nor false": (flags("--flip", "maybe"), "'maybe': true or false"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_in_one_line_and_changes_nothing(tmp_path, capsys, mistake):
    make, message = MISTAKES[mistake]
    settings = {name: value for name, value in SETTINGS.items() if f"--{name}" not in make(tmp_path)}
    common = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
    line = fail(capsys, ["train", *common, *make(tmp_path), "--out", "run"])
    assert re.search(message, line), line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "COMMAND"),
        (["fly"], "'fly'"),
        (["evaluate"], "RUN"),
        (["evaluate", "nowhere"], "nowhere: there is no run here"),
        (["evaluate", "toy.npz"], "toy.npz: there is no run here"),
        (["evaluate", "nowhere", "--checkpoint", "first"], "'first'"),
        (["train", "toy.npz", "--out", "toy.npz"], "toy.npz exists and is not a run directory"),
        (["train", "toy.npz", "--out", "toy.npz/run", *FLAGS], "toy.npz"),
    ],
)
def test_other_commands_and_places_that_cannot_be(capsys, arguments, message):
    assert message in fail(capsys, arguments)


def test_an_error_as_a_process(tmp_path):
    before = tree(tmp_path)
    done = spawn(ENTRY, "train", "toy.npz", "--lamda_u", "3")
    assert done.returncode == 2
    assert done.stdout == ""
    the_line(done.stderr, before)


def test_an_existing_run_is_refused_and_left_untouched(capsys):
    succeed(*QUICK, "--out", "run")
    assert "run holds a run already: use --resume, --overwrite, or another --out" in fail(
        capsys, ["train", *QUICK, "--out", "run"]
    )


def test_one_existing_run_of_two_is_refused_before_the_other_is_trained(tmp_path, capsys):
    (tmp_path / "out").mkdir()
    succeed(*QUICK, "--out", "out/dividemix")
    arguments = ["train", "--limit_train", "100", "--epochs", "1", "--warmup_epochs", "1", "--out", "out"]
    assert "out/dividemix holds a run already" in fail(capsys, arguments)


@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]])
def test_a_folder_with_other_things_is_never_touched(tmp_path, capsys, overwrite):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("years of work")
    line = fail(capsys, ["train", *QUICK, "--out", "thesis", *overwrite])
    assert "thesis exists and is not a run directory" in line


def test_the_working_directory_itself_as_out(tmp_path, capsys, monkeypatch):
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    error = fail(capsys, ["train", "../toy.npz", *QUICK[1:], "--out", "."])
    assert "--out .: a directory of its own is needed" in error


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["--lr", "0.5"], "run: the run there has lr 0.04, not 0.5: resume it with the same settings"),
        (["--net_width", "3"], "net_width 2, not 3"),
        (["--seed", "3"], "seed 1, not 3"),
        (["--noise", "symmetric:0.2"], "noise none, not symmetric:0.2"),
        (["--preset", "cifar10-sym-20"], "lambda_u 25.0, not 0.0"),
    ],
)
def test_a_run_of_another_configuration_is_not_resumed(capsys, changes, message):
    succeed(*QUICK, "--out", "run")
    assert message in fail(capsys, ["train", *QUICK, "--out", "run", "--resume", *changes])


def test_a_damaged_checkpoint_is_not_resumed(tmp_path, capsys):
    succeed(*QUICK, "--out", "run")
    path = next((tmp_path / "run" / "checkpoints" / "last").glob("*.safetensors"))
    path.write_bytes(path.read_bytes()[:-10])
    for arguments in (["train", "--resume", "--out", "run"], ["evaluate", "run"]):
        assert "checkpoint is damaged" in fail(capsys, arguments)


def test_changed_data_is_not_resumed(tmp_path, capsys):
    succeed(*QUICK, "--out", "run")
    save_toy(tmp_path, y_train=toy_arrays()["y_train"][::-1].copy())
    assert "other data" in fail(capsys, ["train", "--resume", "--out", "run"])


def test_what_a_file_of_weights_gave_is_said_and_kept(tmp_path, capsys):
    """Of a net with five classes, where the data has four: everything but the head."""
    source = build_net(Config(net="small_cnn", net_width=2), num_classes=5, image_shape=(8, 8, 1), seed=7)
    torch.save(source.state_dict(), tmp_path / "weights.pth")
    arguments = ["--weights", "weights.pth", "--epochs", "1", "--warmup_epochs", "1"]
    succeed(*QUICK, *arguments, "--out", "run")
    line = "weights.pth: 25 tensors matched; the head 'head.3' is new; 2 (head.3.weight, head.3.bias) not used"
    assert line in capsys.readouterr().out
    assert json.loads((tmp_path / "run" / "env.json").read_text())["weights"] == line
    succeed("--resume", *QUICK, *arguments, "--out", "run")
    assert "tensors matched" not in capsys.readouterr().out  # they counted at the start only


# A full disk


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_a_disk_that_fills_up_at_any_moment(tmp_path, capsys, step):
    """Whatever write fails, there is one line, no half file, and with space again the run goes on to the same end."""
    arguments = [*QUICK, "--method", "cross_entropy", "--noise", "symmetric:0.4"]
    succeed(*arguments, "--out", "straight")
    expected = settled(tmp_path / "straight")
    for at in itertools.count(step=step):
        out = tmp_path / f"run{at}"
        capsys.readouterr()
        with full_disk(tmp_path, at) as fault:
            code = main(["train", *arguments, "--out", out.name])
        if not fault.happened:
            break
        error = capsys.readouterr().err
        assert code == 2
        assert error.startswith("dividemix: error: ")
        assert "No space left on device" in error
        assert out.name in error, "the line does not say where"
        assert error.count("\n") == 1
        left = tree(tmp_path)
        assert not [name for name in left if name.endswith((".tmp", ".partial"))]
        for line in (left.get(f"run{at}/metrics.jsonl") or b"").splitlines():
            json.loads(line)
        succeed(*arguments, "--out", out.name, "--resume")
        assert settled(out) == expected
    assert at > 20


@contextlib.contextmanager
def largest_file(num_bytes):
    """The kernel lets no file grow beyond this size."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("num_bytes", [100, 1000, 8000])
def test_a_limit_of_the_kernel_leaves_nothing(tmp_path, capsys, num_bytes):
    before = tree(tmp_path)
    with largest_file(num_bytes):
        code = main(["train", *QUICK, "--out", "run"])
    error = capsys.readouterr().err
    assert code == 2
    assert os.strerror(errno.EFBIG) in the_line(error, before)


def test_a_full_disk_leaves_the_run_that_was_to_be_overwritten(capsys):
    succeed(*QUICK, "--out", "run")
    before = tree_here()
    capsys.readouterr()
    with largest_file(1000):
        assert main(["train", *QUICK, "--out", "run", "--overwrite"]) == 2
    the_line(capsys.readouterr().err, before)


# Degenerate training


def finite(out):
    """Whether every floating-point tensor of both checkpoints is finite."""
    tensors = [
        tensor
        for name in ("last", "best")
        for tensor in load_checkpoint(out / "checkpoints" / name)[0].values()
        if tensor.is_floating_point()
    ]
    return all(tensor.isfinite().all() for tensor in tensors)


def test_all_losses_equal(tmp_path, capsys):
    """A net that knows nothing and a rate that teaches nothing: each loss is log C to the last bit."""
    (tmp_path / "flat_nets.py").write_text(
        "from torch import nn\n"
        "def flat(num_classes):\n"
        "    head = nn.Linear(64, num_classes)\n"
        "    nn.init.zeros_(head.weight), nn.init.zeros_(head.bias)\n"
        "    return nn.Sequential(nn.Flatten(), head)\n"
    )
    succeed(*QUICK, "--net", "flat_nets:flat", "--lr", "1e-30", "--out", "run")
    assert "dividemix: warning: all losses are equal" in capsys.readouterr().err
    assert finite(tmp_path / "run")


@pytest.mark.parametrize("division", ["global", "per_class"])
def test_all_images_equal(tmp_path, capsys, division):
    save_toy(tmp_path, x_train=np.full((NUM_TRAIN, 8, 8), 7, np.uint8), x_test=np.full((12, 8, 8), 7, np.uint8))
    succeed(*QUICK, "--division", division, "--crop_padding", "0", "--out", "run")
    if division == "per_class":
        assert "dividemix: warning: all losses are equal or nearly so, within each class" in capsys.readouterr().err
    assert finite(tmp_path / "run")


def test_no_sample_reaches_the_threshold(tmp_path, capsys):
    succeed(*QUICK, "--clean_threshold", "1", "--out", "run")
    assert "dividemix: warning: no sample reaches a clean probability of 1" in capsys.readouterr().err
    assert finite(tmp_path / "run")


def test_every_sample_passes(tmp_path, capsys):
    succeed(*QUICK, "--clean_threshold", "0", "--out", "run")
    assert "dividemix: warning: every sample passes for clean" in capsys.readouterr().err
    assert finite(tmp_path / "run")


def test_a_batch_larger_than_the_data(tmp_path):
    succeed(*QUICK, "--batch_size", "100", "--out", "run")
    assert finite(tmp_path / "run")


@pytest.mark.parametrize("division", ["global", "per_class"])
def test_a_class_with_one_sample(tmp_path, division):
    y_train = np.where(np.arange(NUM_TRAIN) == 5, 3, np.arange(NUM_TRAIN) % 3)
    save_toy(tmp_path, y_train=y_train)
    succeed(*QUICK, "--division", division, "--out", "run")
    assert finite(tmp_path / "run")


@pytest.mark.parametrize("batch_size", ["1", "8"])
def test_two_samples(tmp_path, batch_size):
    arrays = toy_arrays()
    save_toy(tmp_path, x_train=arrays["x_train"][:2], y_train=np.array([0, 1]), y_test=np.arange(12) % 2)
    succeed(*QUICK, "--batch_size", batch_size, "--out", "run")
    assert finite(tmp_path / "run")


def test_batches_of_a_single_row(tmp_path, capsys):
    """BatchNorm cannot train on one."""
    one = ["--batch_size", "1", "--num_views", "1", "--clean_threshold", "0"]
    print(fail(capsys, ["train", *QUICK, *one, "--out", "run"]))


def test_a_rate_that_leaves_the_numbers(tmp_path, capsys):
    assert main(["train", *QUICK, "--lr", "1e30", "--out", "run"]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("dividemix: error: ")
    assert "try a smaller --lr" in error
    tensors, _ = load_checkpoint(tmp_path / "run" / "checkpoints" / "last")
    assert all(tensor.isfinite().all() for tensor in tensors.values() if tensor.is_floating_point())
