"""More epochs for a finished run, against a run that was longer from the start."""

from pathlib import Path
from typing import Any

import pytest
from injected import dying, full_disk
from toys import finish, settled, toy_job, trained, tree

from dividemix.errors import InputError
from dividemix.methods import METHODS
from dividemix.runs.extension import extension_words, longer_job
from dividemix.runs.run import Run

STEP = {"lr_schedule": "step", "lr_drop_epoch": 3}
NOT_EQUAL = ("config.yaml", "checkpoints/", "summary.json")  # they say that the run was extended


def results(path: Path) -> dict[str, Any]:
    """What equal trainings leave equal, apart from the record of the extension."""
    return {name: value for name, value in settled(path).items() if not name.startswith(NOT_EQUAL)}


@pytest.mark.parametrize("method", ["dividemix", "cross_entropy"])
def test_two_epochs_and_two_more_are_four(tmp_path: Path, method: str) -> None:
    changes = STEP | {"method": method, "holdout": 0.0} | ({"warmup_epochs": 1} if method == "dividemix" else {})
    trained(tmp_path / "straight", toy_job(tmp_path, epochs=4, **changes))
    run = trained(tmp_path / "run", toy_job(tmp_path, epochs=2, **changes))
    run.extend(2)
    assert not (tmp_path / "run" / "summary.json").exists()
    finish(run)
    assert results(tmp_path / "run") == results(tmp_path / "straight")
    assert run.directory.read_summary()["extended_after"] == [2]
    again = Run.load(tmp_path / "run")
    assert (again.finished, again.job.settings.epochs, again.extended_after) == (True, 4, [2])


def test_train_alone_trains_the_added_epochs(tmp_path: Path) -> None:
    """It once was a generator, and trained nothing without a word."""
    run = trained(tmp_path / "run", toy_job(tmp_path, epochs=2, warmup_epochs=1, **STEP))
    run.extend(2)
    run.train()
    assert run.finished
    assert [row["epoch"] for row in Run.load(tmp_path / "run").rows] == [1, 2, 3, 4]


def test_the_schedule_of_the_longer_training_holds(tmp_path: Path) -> None:
    """With cosine the rate rises again: the added epochs have the rates of a run of six epochs."""
    run = trained(tmp_path / "run", toy_job(tmp_path, epochs=4, lr_schedule="cosine", lr=0.1))
    before = run.job
    run.extend(2)
    rates = [run.job.settings.learning_rate(epoch) for epoch in (4, 5)]
    assert rates == pytest.approx([0.025, 0.00669873])  # 0.1 (1 + cos(pi e / 6)) / 2
    words = extension_words(before, run.job)
    assert words.startswith("extended from 4 to 6 epochs: finished epochs stay")
    assert words.endswith("the learning rate goes from 0.015 to 0.025")


def test_an_extension_survives_a_death_before_its_first_epoch(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", toy_job(tmp_path, epochs=2, warmup_epochs=1, **STEP))
    run.extend(1)
    again = Run.load(tmp_path / "run")
    assert (again.state.epoch, again.job.settings.epochs, again.finished) == (2, 3, False)
    finish(again)
    twice = Run.load(tmp_path / "run")
    twice.extend(1)
    assert finish(Run.load(tmp_path / "run")).directory.read_summary()["extended_after"] == [2, 3]


@pytest.mark.parametrize("at", range(6))
def test_a_process_that_dies_while_extending_leaves_a_run_that_can_be_resumed(tmp_path: Path, at: int) -> None:
    run = trained(tmp_path / "run", toy_job(tmp_path, epochs=2, warmup_epochs=1, **STEP))
    with dying(tmp_path / "run", at):
        run.extend(1)
    again = finish(Run.load(tmp_path / "run"))
    assert again.state.epoch == again.job.settings.epochs in (2, 3)
    assert again.directory.read_summary()["epochs"] == again.state.epoch


def test_a_run_in_the_middle_is_not_extended(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", toy_job(tmp_path), num_epochs=2)
    with pytest.raises(InputError, match="the run has 2 of 4 epochs: resume it to its end"):
        run.extend(1)
    done = finish(run)
    for wrong in (0, -1, 1.5, "3", True):
        with pytest.raises(InputError, match=r"extend is .*: it must be an integer >= 1"):
            done.extend(wrong)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("method", [name for name, method in METHODS.items() if not method.needs_vectors])
def test_every_method_can_be_extended(tmp_path: Path, method: str) -> None:
    """The loop refuses losses and weights that are not finite."""
    run = trained(tmp_path / "run", toy_job(tmp_path, epochs=8, method=method, batch_size=4))
    run.extend(1)
    assert len(finish(run).rows) == 9


@pytest.mark.parametrize("method", ["abstention", "pencil", "forward_correction"])
def test_a_method_does_not_go_back_to_an_earlier_phase(tmp_path: Path, method: str) -> None:
    """Their phases are shares of the epochs: twice as many would begin the second phase again."""
    run = trained(tmp_path / "run", toy_job(tmp_path, epochs=4, method=method, batch_size=4))
    before = settled(tmp_path / "run")
    advice = "and it would return to an earlier phase; add fewer, or train again with epochs 12"
    with pytest.raises(InputError, match=advice):
        run.extend(8)
    assert settled(tmp_path / "run") == before


@pytest.mark.parametrize("epochs", [1, 2, 4])
def test_the_history_is_extended_by_any_number_of_epochs(tmp_path: Path, epochs: int) -> None:
    """A share of the longer run would learn the given labels again. Oracle: a run whose first phase is that long."""
    given = {1: 1, 2: 1, 4: 2}[epochs]
    job = toy_job(tmp_path, method="robust_history", lr_schedule="step", epochs=epochs)
    run = trained(tmp_path / "run", job)
    run.extend(8)
    assert run.job.settings.learning_rate(epochs) == job.settings.lr
    again = finish(Run.load(tmp_path / "run"))
    assert [row["phase"] for row in again.rows] == ["warmup"] * given + ["refine"] * (epochs + 8 - given)
    assert again.job.values()["given_epochs"] == given
    straight = toy_job(tmp_path, method="robust_history", lr_schedule="step", epochs=epochs + 8, given_epochs=given)
    trained(tmp_path / "straight", straight)
    unlike = {1: ("metrics.jsonl", "report.html")}.get(epochs, ())  # the only epoch was also the one that judged
    for name, value in results(tmp_path / "straight").items():
        assert name in unlike or results(tmp_path / "run")[name] == value, name


@pytest.mark.parametrize("method", [name for name, method in METHODS.items() if not method.needs_vectors])
def test_who_adds_fewer_epochs_as_advised_succeeds(tmp_path: Path, method: str) -> None:
    """The advice was given also where not one epoch can be added."""
    for epochs in range(2, 9):  # the toys' warm-up has two
        job = toy_job(tmp_path, method=method, epochs=epochs)
        for num_more in (1, 2, 5, 20):
            try:
                longer_job(job, epochs, num_more)
            except InputError as error:
                if "add fewer" in str(error):
                    assert longer_job(job, epochs, 1).settings.epochs == epochs + 1


def test_a_full_disk_leaves_the_finished_run_as_it_was(tmp_path: Path) -> None:
    """The summary was removed before the longer job was written."""
    run = trained(tmp_path / "run", toy_job(tmp_path, method="cross_entropy", epochs=1))
    before = tree(tmp_path / "run")
    with full_disk(tmp_path, 0), pytest.raises(OSError, match="No space left"):
        run.extend(1)
    assert tree(tmp_path / "run") == before
