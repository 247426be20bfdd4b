"""New run directories against the file system: what is there before, after, and when something goes wrong between."""

import itertools
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from injected import dying
from toys import epoch_row, tree

from dividemix.errors import InputError
from dividemix.lock import exclusive
from dividemix.planning.job import Job
from dividemix.runs.creation import create_directory, refuse_existing
from dividemix.runs.directory import RunDirectory
from dividemix.runs.reviewed import review_file

ROWS = [epoch_row(1, test_acc=0.1 + 0.2), epoch_row(2)]


def fill(path: Path) -> None:
    directory = RunDirectory(path)
    directory.write_job(Job(data="fashion"))
    directory.write_json("env.json", {"name": "é"})


def make(path: Path, *, overwrite: bool = False, numbered: bool = False) -> RunDirectory:
    return RunDirectory(create_directory(path, fill, overwrite=overwrite, numbered=numbered))


def test_a_new_directory_appears_filled(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "run"

    def watched(partial: Path) -> None:
        assert not path.exists()
        fill(partial)

    assert create_directory(path, watched) == path
    assert RunDirectory(path).read_job() == Job(data="fashion")
    assert json.loads((path / "env.json").read_text(encoding="utf-8")) == {"name": "é"}
    assert sorted(tree(tmp_path)) == ["deep", "deep/run", "deep/run/config.yaml", "deep/run/env.json"]


def test_an_empty_folder_may_become_a_run(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    assert make(tmp_path / "run").read_job() == Job(data="fashion")


def run_there(path: Path) -> None:
    make(path)


def review_there(path: Path) -> None:
    make(path)
    (path / "review").mkdir()
    (path / "review" / "corrections.csv").write_text(
        "index,path,given_label,new_label,action\n1,,a,b,accept\n2,,a,,skip\n"
    )


def damaged_review_there(path: Path) -> None:
    review_there(path)
    (path / "review" / "corrections.csv").write_bytes(b"\xff\xfe\xff")


def file_there(path: Path) -> None:
    path.write_text("mine")


def folder_there(path: Path) -> None:
    path.mkdir()
    (path / "thesis.txt").write_text("mine")


@pytest.mark.parametrize(
    ("occupy", "overwrite", "message"),
    [
        (run_there, False, "add resume to continue it or overwrite to replace it, or choose another out"),
        (review_there, True, "run has a review with 2 decisions, which would be deleted by overwrite: move"),
        (damaged_review_there, True, "corrections.csv: line 1 is not UTF-16-LE"),
        (file_there, False, "is not a run directory"),
        (file_there, True, "is not a run directory"),
        (folder_there, False, "is not a run directory"),
        (folder_there, True, "is not a run directory"),
    ],
)
def test_what_exists_is_refused_and_left_untouched(
    tmp_path: Path, occupy: Callable[[Path], None], overwrite: bool, message: str
) -> None:
    path = tmp_path / "run"
    occupy(path)
    before = tree(tmp_path)
    attempts: tuple[Callable[..., object], ...] = (make, refuse_existing)
    for attempt in attempts:
        with pytest.raises(InputError, match=message):
            attempt(path, overwrite=overwrite)
    assert tree(tmp_path) == before


def test_overwriting_leaves_nothing_of_the_old_run(tmp_path: Path) -> None:
    old = make(tmp_path / "run")
    old.write_rows(ROWS[:1])
    refuse_existing(tmp_path / "run", overwrite=True)
    new = make(tmp_path / "run", overwrite=True)
    assert new.read_rows() == []
    assert sorted(tree(tmp_path)) == ["run", "run/config.yaml", "run/env.json"]


def test_a_review_without_decisions_may_be_replaced_and_one_made_meanwhile_may_not(tmp_path: Path) -> None:
    review_there(make(tmp_path / "run").path.with_name("other"))
    made = tmp_path / "other" / "review"
    (tmp_path / "run" / "review").mkdir()
    (tmp_path / "run" / "review" / "corrections.csv").write_text("index,path,given_label,new_label,action\n")
    refuse_existing(tmp_path / "run", overwrite=True)

    def slow(partial: Path) -> None:
        fill(partial)
        shutil.copytree(made, tmp_path / "run" / "review", dirs_exist_ok=True)

    for numbered in (False, True):
        with pytest.raises(InputError, match="run has a review with 2 decisions"):
            create_directory(tmp_path / "run", slow if not numbered else fill, overwrite=True, numbered=numbered)
    assert review_file(tmp_path / "run").read_text() == (made / "corrections.csv").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "run"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_an_error_while_filling_leaves_things_as_they_were(tmp_path: Path, overwrite: bool) -> None:
    if overwrite:
        make(tmp_path / "run").write_rows(ROWS[:1])
    before = tree(tmp_path)

    def broken(partial: Path) -> None:
        fill(partial)
        raise InputError("no")

    with pytest.raises(InputError, match="no"):
        create_directory(tmp_path / "run", broken, overwrite=overwrite)
    assert tree(tmp_path) == before


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_process_that_dies_leaves_a_whole_run_or_none_and_the_next_cleans_up(tmp_path: Path, overwrite: bool) -> None:
    for at in itertools.count():
        path = tmp_path / str(at) / "run"
        path.parent.mkdir()
        if overwrite:
            make(path).write_rows(ROWS)
        old = tree(path)
        with dying(path.parent, at) as fault:
            make(path, overwrite=overwrite)
        new = sorted(tree(path)) == ["config.yaml", "env.json"]
        assert new or tree(path) == (old if path.exists() else {}), f"half a run, after dying at operation {at}"
        if not fault.happened:
            break
        make(path, overwrite=True)
        assert sorted(tree(path.parent)) == ["run", "run/config.yaml", "run/env.json"]
    assert at > 5


def test_a_name_that_is_taken_gets_a_number(tmp_path: Path) -> None:
    made = [make(tmp_path / "run", numbered=True).path for _ in range(3)]
    assert made == [tmp_path / "run", tmp_path / "run-2", tmp_path / "run-3"]
    (tmp_path / "other").write_text("mine")
    assert make(tmp_path / "other", numbered=True).path == tmp_path / "other-2"
    assert (tmp_path / "other").read_text() == "mine"


@pytest.mark.parametrize("occupy", [run_there, file_there, folder_there])
def test_what_another_process_creates_meanwhile_is_left_alone(tmp_path: Path, occupy: Callable[[Path], None]) -> None:
    path, alone = tmp_path / "here" / "run", tmp_path / "alone" / "run"
    for place in (path, alone):
        place.parent.mkdir()
    occupy(alone)

    def slow(partial: Path) -> None:
        fill(partial)
        occupy(path)

    with pytest.raises(InputError, match="run: another process has created it meanwhile: use another out"):
        create_directory(path, slow)
    assert tree(path.parent) == tree(alone.parent)
    assert create_directory(path, fill, numbered=True) == path.with_name("run-2")


def test_a_directory_that_another_process_fills_is_no_stray(tmp_path: Path) -> None:
    """Two processes create runs of the same name at the same time; the second gets the next number."""

    def slow(partial: Path) -> None:
        fill(partial)
        assert make(tmp_path / "run").path == tmp_path / "run"
        assert partial.is_dir()

    assert create_directory(tmp_path / "run", slow, numbered=True) == tmp_path / "run-2"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["run", "run-2"]


def test_a_run_that_is_being_trained_is_not_replaced(tmp_path: Path) -> None:
    path = make(tmp_path / "run").path
    before = tree(tmp_path)
    with exclusive(path), pytest.raises(InputError, match="another process"):
        make(path, overwrite=True)
    assert tree(tmp_path) == before


@pytest.mark.parametrize("path", [Path("/"), Path(".."), Path("some/..")])
def test_a_run_needs_a_directory_for_itself(path: Path) -> None:
    with pytest.raises(InputError, match="it must be a directory for this run alone, such as runs/first"):
        refuse_existing(path, overwrite=True)
