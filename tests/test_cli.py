"""The command line as a whole: what it prints, returns and loads, and where an error ends.

Every error must be one line, exit code 2, and leave the working directory as it was.
"""

import sys
from pathlib import Path

import pytest
import yaml
from toys import FLAGS, save_toy, tree
from workshop import ENTRY, QUICK, fail, shown, spawn, the_line, tree_here

import dividemix
from dividemix.cli import main


@pytest.fixture(autouse=True)
def _workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working directory with toy.npz."""
    monkeypatch.chdir(tmp_path)
    save_toy(tmp_path)


def test_help_as_a_process() -> None:
    done = spawn(ENTRY, "--help")
    assert done.returncode == 0
    assert all(command in done.stdout for command in ("train", "evaluate", "presets", "methods"))
    assert done.stderr == ""


def test_help_is_quick_because_it_imports_nothing_heavy() -> None:
    code = (
        "import sys; from dividemix.cli import main\n"
        "for words in (['--help'], ['train', '--help'], ['train', '--method', 'cross_entropy', '--help']):\n"
        "    try: main(words)\n"
        "    except SystemExit: pass\n"
        "main(['presets']), main(['methods'])\n"
        "assert not {'torch', 'numpy', 'rich'} & set(sys.modules)"
    )
    done = spawn(code)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["train", "nowhere"],
        ["train", "toy.npz", "--test", "nowhere"],
        ["train", "toy.npz", "--noise", "symetric:0.5"],
        ["train", "toy.npz", "--weights", "nowhere.pth"],
        ["train", "toy.npz", "--lr", "-1"],
        ["train", "toy.npz", "--learning_rate", "1"],
        ["train", "toy.npz", "--temperature", "1", "--method", "cross_entropy"],
        ["predict", ".", "nowhere.jpg"],
        ["evaluate", "nowhere"],
        ["resume", "nowhere"],
        ["relabel", "toy.npz", "--run", "nowhere"],
        ["share", "nowhere", "--to", "fiftyone"],
        ["report", "nowhere"],
        ["review", "nowhere"],
    ],
)
def test_a_mistake_that_needs_no_torch_is_found_without_it(words: list[str]) -> None:
    code = f"import sys; from dividemix.cli import main; print(main({words!r}), 'torch' in sys.modules)"
    done = spawn(code)
    assert done.stdout == "2 False\n", done.stderr


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "--version").strip() == dividemix.__version__


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "dividemix needs a COMMAND: see dividemix --help"),
        (["--versoin"], "unknown flag --versoin: did you mean --version?"),
        (["fly"], "unknown command 'fly': the commands are train, "),
        (["trian", "toy.npz"], "unknown command 'trian': did you mean train?"),
        (["evaluate"], "dividemix evaluate needs RUN: see dividemix evaluate --help"),
        (
            ["evaluate", "nowhere"],
            "nowhere: not a run directory: give the directory that dividemix train wrote, such as",
        ),
        (
            ["train", "--resume", "--out", "nowhere"],
            "nowhere: no run to resume; --out must be a run directory, such as",
        ),
        (["evaluate", "toy.npz"], "toy.npz: not a run directory: give"),
        (
            ["evaluate", "nowhere", "--checkpoint", "first"],
            "--checkpoint is 'first': it must be one of kept, last, best",
        ),
        (["train", "toy.npz", "--out", "toy.npz"], "toy.npz exists and is not a run directory"),
        (["train", "toy.npz", "--out", "toy.npz/run", *FLAGS], "toy.npz"),
    ],
)
def test_other_commands_and_places_that_cannot_be(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert message in fail(capsys, arguments)


@pytest.mark.parametrize(
    "words",
    [["reproduce", "table1"], ["sweep", "toy.npz", "--vary", "lr=1,2"], ["methods"], ["data", "fetch", "cifar10"]],
)
def test_torchrun_is_for_train_and_resume_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    """Each process would do all of the work, and its trainings would wait for each other for ever."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    line = fail(capsys, words)
    assert f"dividemix {words[0]}" in line
    assert " is for one process, and torchrun started 2: start it without torchrun; " in line
    assert line.endswith("only train and resume are for several processes\n")
    assert ("--jobs N trains N runs at a time here, --executor slurm" in line) == (words[0] in ("reproduce", "sweep"))
    monkeypatch.setenv("RANK", "1")  # one process speaks for all
    assert main(words) == 2
    assert capsys.readouterr().err == ""


def test_an_error_as_a_process(tmp_path: Path) -> None:
    before = tree(tmp_path)
    done = spawn(ENTRY, "train", "toy.npz", "--lamda_u", "3")
    assert done.returncode == 2
    assert done.stdout == ""
    the_line(done.stderr, before)


def test_ctrl_c_before_the_training_is_no_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
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


# Flags


@pytest.mark.parametrize(
    ("flag", "meant"),
    [
        ("--lamda_u", "--lambda_u"),
        ("--epoch", "--epochs"),
        ("--batch", "--batch_size"),
        ("--lamda-u=3", "--lambda_u"),
        ("--foo", None),
        ("--xyzzy", None),
    ],
)
def test_only_a_flag_that_is_close_is_suggested(
    capsys: pytest.CaptureFixture[str], flag: str, meant: str | None
) -> None:
    line = fail(capsys, ["train", "toy.npz", flag])
    assert f"unknown flag {flag.partition('=')[0].replace('a-u', 'a_u')}: " in line
    assert line.endswith(f"did you mean {meant}?\n" if meant else "see dividemix train --help\n")


def test_a_dash_inside_a_flag_counts_as_an_underscore(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["toy.npz", "--batch-size=7", "--lr-schedule", "step", "--print-config"]
    assert main(["train", *words]) == 0
    settings = yaml.safe_load(capsys.readouterr().out)
    assert (settings["batch_size"], settings["lr_schedule"]) == (7, "step")


def test_a_dash_elsewhere_stays_a_dash(capsys: pytest.CaptureFixture[str]) -> None:
    assert "'my-toy.npz': no such file" in fail(capsys, ["train", "my-toy.npz"])
    assert "noise 'a-b' is unknown" in fail(capsys, ["train", "toy.npz", "--noise=a-b", *FLAGS])
    assert "--my-run: not a run directory" in fail(capsys, ["evaluate", "--", "--my-run"])


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["train", "toy.npz", "--lr", "0"], "--lr is 0.0: it must be a number > 0"),
        (["train", "--config", "c.yaml"], "data is ['a']: it must be text"),  # no flag of train
        (["train", "toy.npz", "--out", "."], "--out is .: it must be a directory for this run alone"),
        (["reproduce", "table1", "--jobs", "0"], "--jobs is 0: it must be an integer >= 1"),
    ],
)
def test_the_command_line_adds_the_dashes_to_a_name_that_is_a_flag(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], line: str
) -> None:
    (tmp_path / "c.yaml").write_text("data: [a]")
    assert f"dividemix: error: {line}" in fail(capsys, arguments)


def test_a_terminal_shows_a_message_broken_between_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    for is_terminal in (False, True):
        monkeypatch.setattr(sys.stderr, "isatty", lambda answer=is_terminal: answer)
        assert main(["evaluate", "a-path/that-is/longer-than/the-terminal"]) == 2
        lines = capsys.readouterr().err.splitlines()
        assert (len(lines) > 1) == is_terminal
        words = " ".join(lines).split()
        assert "a-path/that-is/longer-than/the-terminal:" in words
        assert words[:2] == ["dividemix:", "error:"]
