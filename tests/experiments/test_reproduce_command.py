"""`dividemix reproduce` against what it prints and returns; every error one line, exit code 2, nothing written."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from dividemix.cli import main
from dividemix.data.readers import cifar
from dividemix.experiments import FIGURES, TABLES, runner
from dividemix.experiments.plans import make_plan


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["table7"], "NAME is 'table7': it must be one of table1, table2, "),
        ([], "dividemix reproduce needs NAME: see dividemix reproduce --help"),
        (["table1", "--scale", "huge"], "--scale is 'huge': it must be one of mini, paper"),
        (["table1", "--seeds", "0"], "--seeds is 0: it must be an integer >= 1"),
        (["table1", "--jobs", "0"], "--jobs is 0: it must be an integer >= 1"),
        (["table1", "--scale", "paper"], "table1 at paper scale needs cifar10: give its folder as --root DIR"),
        (["table4"], "table4 has no mini scale"),
        (["figure3", "--seeds", "2"], "--seeds 2: figure3 shows one run of each kind"),
        (["table1", "--job", "2"], "unknown flag --job: did you mean --jobs?"),
        (["table1", "--seed", "2"], "unknown flag --seed: did you mean --seeds?"),
        (["table1", "--lambda_u", "2"], "unknown flag --lambda_u: see dividemix reproduce --help"),  # it is train's
        (["table1", "table2"], "unexpected argument 'table2': see dividemix reproduce --help"),
        (["table1", "--weights", "a.pth"], "--weights a.pth: table1 at mini scale starts from none"),
        (
            ["table8", "--root", "here"],
            "here: no such file or folder; --root must be cifar-10-python.tar.gz, cifar-10-batches-py",
        ),
        (["table8", "--root", "here"], "dividemix data fetch cifar10 --root DIR downloads it"),
        (["table4", "--scale", "paper", "--root", "here"], "here: no such folder; --root must be the folder with"),
    ],
)
def test_errors_are_one_line_and_leave_nothing(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert message in said.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", [*TABLES, *FIGURES])
def test_a_dry_run_names_every_run_and_writes_nothing(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", name, "--scale", "paper", "--dry-run"]) == 0
    said = capsys.readouterr().out
    for run in make_plan(name, "paper").runs:
        assert f"  {run.name}:" in said
    assert not list(tmp_path.iterdir())


def test_the_mini_scale_is_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "table1", "--dry-run"]) == 0
    assert "scale: mini" in capsys.readouterr().out


def cifar10_of(num_train: int, num_test: int) -> SimpleNamespace:
    return SimpleNamespace(name="cifar10", train_labels=range(num_train), test_labels=range(num_test))


@pytest.mark.parametrize("sizes", [(5_000, 10_000), (50_000, 200)])
def test_a_part_of_cifar_does_not_pass_for_the_whole_at_paper_scale(
    sizes: tuple[int, int], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cifar, "read_cifar10", lambda root: cifar10_of(*sizes))
    assert main(["reproduce", "table8", "--scale", "paper", "--root", "part"]) == 2
    assert f"part has {sizes[0]:,} training and {sizes[1]:,} test images of cifar10" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_command_in_a_table_has_all_that_decides_on_its_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs too: a run's threads hang on them, and its bits on its threads."""
    commands: list[str] = []

    def reproduce(*_: object, command: str, **__: object) -> int:
        commands.append(command)
        return 0

    monkeypatch.setattr(runner, "reproduce", reproduce)
    main(["reproduce", "table5", "--seeds", "3", "--jobs", "2", "--out", "there"])
    main(["reproduce", "table1", "--root", "a b"])
    assert commands == [
        "dividemix reproduce table5 --scale mini --seeds 3 --jobs 2",
        "dividemix reproduce table1 --scale mini --seeds 1 --root DIR",
    ]


def test_a_root_that_lacks_the_second_data_set_is_refused_before_the_first_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cifar, "read_cifar10", lambda root: cifar10_of(50_000, 10_000))  # as if it were there
    (tmp_path / "root").mkdir()
    assert main(["reproduce", "table1", "--scale", "paper", "--root", "root", "--out", "out"]) == 2
    assert "root: has no cifar100" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
