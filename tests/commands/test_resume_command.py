"""dividemix resume, and dividemix train --resume without data: which run is continued, and what is said if none is."""

import contextlib
import os
from pathlib import Path

import pytest
from toys import settled, toy_job, trained
from workshop import QUICK, fail, succeed, tree_here

from dividemix.cli import main
from dividemix.lock import exclusive

pytestmark = pytest.mark.usefixtures("workshop")


def stop_after_one_epoch(name: str) -> Path:
    """A run in runs/ that broke off after its first epoch."""
    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(RuntimeError):
        patch.setattr("dividemix.display.epoch_line", _stop)
        main(["train", *QUICK, "--out", f"runs/{name}"])
    assert f"runs/{name}/summary.json" not in tree_here()
    return Path("runs", name)


def _stop(*_: object) -> str:
    raise RuntimeError("as if something had broken after the first epoch")


def saved_at(run: Path, seconds: float) -> None:
    """Let the run's last checkpoint be of another time."""
    os.utime(run / "checkpoints" / "last" / "checkpoint.json", (seconds, seconds))


def test_the_newest_unfinished_run_is_resumed(capsys: pytest.CaptureFixture[str]) -> None:
    succeed(*QUICK, "--out", "straight")
    older, newer = stop_after_one_epoch("a"), stop_after_one_epoch("b")
    saved_at(older, 1e9)
    saved_at(newer, 2e9)
    assert main(["resume"]) == 0
    said = capsys.readouterr().out
    assert "runs/b: the newest of 2 unfinished runs; the others: a" in said
    assert "resumed after epoch 1" in said
    assert settled(newer) == settled(Path("straight"))
    assert not (older / "summary.json").exists()
    assert main(["resume"]) == 0
    assert settled(older) == settled(Path("straight"))
    assert "runs: no unfinished run; to extend a finished one:" in fail(capsys, ["resume"])


def test_a_run_that_another_process_trains_is_not_waiting(capsys: pytest.CaptureFixture[str]) -> None:
    run = stop_after_one_epoch("a")
    with exclusive(run):
        assert "runs: no unfinished run" in fail(capsys, ["resume"])


@pytest.mark.parametrize("words", [["resume", "a"], ["train", *QUICK, "--out", "runs/a", "--resume"]])
def test_a_run_that_another_process_trains_is_refused_by_one_line(
    capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    """It once printed "resumed after epoch 1" first."""
    with exclusive(stop_after_one_epoch("a")):
        capsys.readouterr()
        assert main(words) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "dividemix: error: runs/a: another process is training this run\n"


@pytest.mark.parametrize("words", [["resume", "runs/a"], ["resume", "a"], ["resume", "a", "--device", "cpu"]])
def test_a_run_is_named_by_its_path_or_its_name(words: list[str]) -> None:
    succeed(*QUICK, "--out", "straight")
    stop_after_one_epoch("a")
    assert main(words) == 0
    assert settled(Path("runs/a")) == settled(Path("straight"))


@pytest.mark.parametrize(
    "words",
    [["train", "--resume"], ["train", "--resume", "runs/a"], ["train", "runs/a", "--resume", "--out", "runs/a"]],
)
def test_train_resumes_what_the_user_means(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    """It once trained the demo, or looked for images in the run directory."""
    succeed(*QUICK, "--out", "straight")
    stop_after_one_epoch("a")
    capsys.readouterr()
    assert main(words) == 0
    assert "robust on toy.npz" in capsys.readouterr().out
    assert settled(Path("runs/a")) == settled(Path("straight"))


def test_what_cannot_be_resumed_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert "runs: no unfinished run to resume; name DATA to start one" in fail(capsys, ["train", "--resume"])
    assert "nothing: no run to resume: give the directory that" in fail(capsys, ["resume", "nothing"])
    stop_after_one_epoch("a")
    assert "nothing: no run to resume: unfinished runs in runs: a" in fail(capsys, ["resume", "nothing"])
    assert "runs/a is a run, not data: dividemix resume runs/a continues it" in fail(capsys, ["train", "runs/a"])
    both = ["train", "runs/a", "--resume", "--out", "runs/b"]
    assert "continues one run, not both runs/a and runs/b" in fail(capsys, both)
    assert "--extend needs the finished run" in fail(capsys, ["resume", "--extend", "3"])
    assert "the run has 1 of 2 epochs: resume it to its end" in fail(capsys, ["resume", "a", "--extend", "3"])
    assert "unknown flag --lr: see dividemix resume --help" in fail(capsys, ["resume", "a", "--lr", "3"])


def test_a_finished_run_is_extended(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    trained(tmp_path / "runs" / "a", toy_job(tmp_path, epochs=2, warmup_epochs=1))
    assert main(["resume", "a"]) == 0
    assert "runs/a: finished after 2 epochs; --extend EPOCHS adds more" in capsys.readouterr().out
    assert "--extend is 0: it must be an integer >= 1" in fail(capsys, ["resume", "a", "--extend", "0"])
    assert main(["resume", "a", "--extend", "1"]) == 0
    said = capsys.readouterr().out
    assert "runs/a: extended from 2 to 3 epochs: finished epochs stay" in said
    assert "resumed after epoch 2" in said
    assert "epoch 3/3  mix" in said
    assert "epochs: 3\n" in Path("runs/a/config.yaml").read_text()
